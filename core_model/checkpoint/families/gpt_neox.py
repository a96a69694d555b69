"""GPT-NeoX and Pythia (Black et al. 2022, Biderman et al. 2023): queries, keys and values fused head by head."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core_model.checkpoint.families.decoders import (
    DecoderHeads,
    DecoderKeys,
    architectures,
    decoder_family,
    fused_by_head,
)
from core_model.checkpoint.families.family import layer_rows, name_table, read_sizes, row
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.checkpoint.families.plan import USUAL_PLACES, read_plan, write_keys
from core_model.checkpoint.families.rotary import DEFAULT_BASE, RopeKeys, read_rotary, rotary_share, write_rotary
from core_model.config import ModelConfig, RotaryPositions, StackConfig

_HEADS = DecoderHeads(table="embed_in.weight", language_model="embed_out")
_PLACES = {
    **USUAL_PLACES,
    "activation": "hidden_act",
    "eps": "layer_norm_eps",
    "embedding_dropout": "hidden_dropout",
    "attention_dropout": "attention_dropout",
    "residual_dropout": "hidden_dropout",
}


@dataclass(frozen=True, kw_only=True)
class GptNeoxKeys(DecoderKeys):
    """The keys of config.json that decide what is computed.

    `rotary_pct` and `rotary_emb_base` are what rope_parameters calls partial_rotary_factor and rope_theta.
    """

    hidden_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    intermediate_size: Count
    hidden_act: str = "gelu"
    layer_norm_eps: Positive = 1e-5
    max_position_embeddings: Count = 2048
    rotary_pct: Positive = 0.25
    rotary_emb_base: Positive = DEFAULT_BASE
    rope_scaling: RopeKeys | None = None
    rope_parameters: RopeKeys | None = None
    use_parallel_residual: bool = True
    attention_bias: bool = True
    hidden_dropout: Rate = 0.0
    attention_dropout: Rate = 0.0


def _read(keys: GptNeoxKeys) -> StackConfig:
    plan = read_plan(keys, _PLACES)
    rope = keys.rope_parameters or keys.rope_scaling or RopeKeys()
    position = read_rotary(
        replace(rope, partial_rotary_factor=rope.partial_rotary_factor or keys.rotary_pct),
        head_size=plan.head_size,
        theta=keys.rotary_emb_base,
        max_length=keys.max_position_embeddings,
    )
    attention = plan.attention(position=position, bias=keys.attention_bias)
    return plan.stack([plan.layer(attention=attention, parallel=keys.use_parallel_residual)] * plan.n_layers)


def _write(config: ModelConfig) -> GptNeoxKeys:
    layer = config.output_stack.layers[0]
    position = layer.attention.position
    rope, share = RopeKeys(), 1.0
    if isinstance(position, RotaryPositions):
        share = rotary_share(position.n_rotated, layer.attention.head_size)
        rope = replace(write_rotary(position), partial_rotary_factor=share)
    return GptNeoxKeys(
        **write_keys(config, _PLACES),
        rotary_pct=share,
        rotary_emb_base=rope.rope_theta or DEFAULT_BASE,
        rope_parameters=rope,
        use_parallel_residual=layer.parallel,
        attention_bias=layer.attention.query_bias,
    )


FAMILY = decoder_family(
    _HEADS,
    _read,
    _write,
    key="gpt_neox",
    label="GPT-NeoX",
    architectures=architectures("GPTNeoX", "sequence_classes", "token_classes", "answer_span"),
    keys=GptNeoxKeys,
    sizes=read_sizes(
        {
            "vocab_size": (_HEADS.table, 0),
            "hidden_size": (_HEADS.table, 1),
            "intermediate_size": ("layers.0.mlp.dense_h_to_4h.weight", 0),
        },
        num_hidden_layers="layers.{i}.input_layernorm.weight",
    ),
    places=_PLACES,
    names=name_table(
        _HEADS,
        *layer_rows(
            "layers.{i}",
            {
                "input_layernorm.*": "attention_residual.before.*",
                "attention.dense.*": "attention.output.*",
                "post_attention_layernorm.*": "feed_forward_residual.before.*",
                "mlp.dense_h_to_4h.*": "feed_forward.input.*",
                "mlp.dense_4h_to_h.*": "feed_forward.output.*",
            },
        ),
        row("final_layer_norm.*", "decoder.final_norm.*"),
        of_config=fused_by_head("layers.{i}", "attention.query_key_value.*"),
        prefixes=("gpt_neox.",),
        spellings=((r"^lm_head\.", "embed_out."),),
        buffers=(r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)", r"rotary_emb\.inv_freq"),
    ),
    markers=(r"(gpt_neox\.)?embed_in\.weight", r"(gpt_neox\.)?layers\.0\.attention\.query_key_value\.weight"),
    tied_by_default=False,
)
