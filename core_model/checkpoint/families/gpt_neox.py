"""GPT-NeoX and Pythia (Black et al. 2022, Biderman et al. 2023): queries, keys and values fused head by head."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core_model.checkpoint.families.conversion import Joined
from core_model.checkpoint.families.decoders import (
    CAUSAL,
    DecoderHeads,
    DecoderKeys,
    architectures,
    common_keys,
    equal_heads,
    foreign,
)
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Positive, Rate, activation, activation_name
from core_model.checkpoint.families.rotary import DEFAULT_BASE, RopeKeys, read_rotary, rotary_share, write_rotary
from core_model.config import (
    FeedForwardSpec,
    LayerSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    RotaryPositions,
    StackConfig,
    TokenEmbedding,
    multi_head,
)

_HEADS = DecoderHeads(table="embed_in.weight", language_model="embed_out")


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


def _read(keys: GptNeoxKeys, weights: Weights) -> ModelConfig:
    norm = NormSpec(eps=keys.layer_norm_eps)
    residual = ResidualSpec(before=norm, dropout=keys.hidden_dropout)
    layer = LayerSpec(
        attention=multi_head(
            keys.hidden_size,
            keys.num_attention_heads,
            mask=CAUSAL,
            position=_read_positions(keys, equal_heads(keys, "hidden_size", "num_attention_heads")),
            query_bias=keys.attention_bias,
            key_bias=keys.attention_bias,
            value_bias=keys.attention_bias,
            output_bias=keys.attention_bias,
            dropout=keys.attention_dropout,
        ),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(
            d_hidden=keys.intermediate_size, activation=activation("hidden_act", keys.hidden_act)
        ),
        feed_forward_residual=residual,
        parallel=keys.use_parallel_residual,
    )
    decoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.hidden_size, dropout=keys.hidden_dropout),
        layers=(layer,) * keys.num_hidden_layers,
        final_norm=norm,
    )
    return ModelConfig(decoder=decoder, head=_HEADS.read(FAMILY, keys, weights), special=keys.special)


def _read_positions(keys: GptNeoxKeys, head_size: int) -> RotaryPositions:
    rope = keys.rope_parameters or keys.rope_scaling or RopeKeys()
    return read_rotary(
        replace(rope, partial_rotary_factor=rope.partial_rotary_factor or keys.rotary_pct),
        head_size=head_size,
        theta=keys.rotary_emb_base,
        max_length=keys.max_position_embeddings,
    )


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    layer, attention = stack.layers[0], stack.layers[0].attention
    rope, share = RopeKeys(), 1.0
    if isinstance(attention.position, RotaryPositions):
        share = rotary_share(attention.position.n_rotated, attention.head_size)
        rope = replace(write_rotary(attention.position), partial_rotary_factor=share)
    keys = GptNeoxKeys(
        **common_keys(config),
        hidden_size=stack.d_model,
        num_hidden_layers=stack.n_layers,
        num_attention_heads=attention.n_heads,
        intermediate_size=layer.feed_forward.d_hidden,
        hidden_act=activation_name(layer.feed_forward.activation),
        layer_norm_eps=stack.final_norm.eps if stack.final_norm else 1e-5,
        max_position_embeddings=rope.original_max_position_embeddings or 2048,  # rotary positions have no last one
        rotary_pct=share,
        rotary_emb_base=rope.rope_theta or DEFAULT_BASE,
        rope_parameters=rope,
        use_parallel_residual=layer.parallel,
        attention_bias=attention.query_bias,
        hidden_dropout=layer.attention_residual.dropout,
        attention_dropout=attention.dropout,
    )
    return foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "layers.{i}", "decoder.layers.{i}"
    n_heads = config.output_stack.layers[0].attention.n_heads
    return (
        *_HEADS.rows(config.head),
        row(f"{theirs}.input_layernorm.*", f"{ours}.attention_residual.before.*"),
        row(
            f"{theirs}.attention.query_key_value.*",
            *(f"{ours}.attention.{part}.*" for part in ("query", "key", "value")),
            conversion=Joined(n_groups=n_heads),
        ),
        row(f"{theirs}.attention.dense.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.post_attention_layernorm.*", f"{ours}.feed_forward_residual.before.*"),
        row(f"{theirs}.mlp.dense_h_to_4h.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.mlp.dense_4h_to_h.*", f"{ours}.feed_forward.output.*"),
        row("final_layer_norm.*", "decoder.final_norm.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size("embed_in.weight", 0),
        "hidden_size": weights.size("embed_in.weight", 1),
        "num_hidden_layers": weights.n_layers("layers.{i}.input_layernorm.weight") or None,
        "intermediate_size": weights.size("layers.0.mlp.dense_h_to_4h.weight", 0),
    }


FAMILY = Family(
    key="gpt_neox",
    label="GPT-NeoX",
    model_types=("gpt_neox",),
    architectures=architectures("GPTNeoX", "sequence_classes", "token_classes", "answer_span"),
    keys=GptNeoxKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "d_model": "hidden_size",
        "d_hidden": "intermediate_size",
        "vocab_size": "vocab_size",
        "max_length": "max_position_embeddings",
        "activation": "hidden_act",
        "eps": "layer_norm_eps",
    },
    names=NameTable(
        rows=_rows,
        prefixes=("gpt_neox.",),
        roots=_HEADS.roots,
        spellings=((r"^lm_head\.", "embed_out."),),
        buffers=(r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)", r"rotary_emb\.inv_freq"),
    ),
    markers=(r"(gpt_neox\.)?embed_in\.weight", r"(gpt_neox\.)?layers\.0\.attention\.query_key_value\.weight"),
    tied_by_default=False,
)
