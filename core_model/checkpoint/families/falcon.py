"""Falcon (Almazrouei et al. 2023) of three makes.

RW: ALiBi, one head after the other. 7B: one key head for all, attention beside feed-forward behind one norm. 40B and
later ("new decoder architecture"): grouped key heads, a norm for each of the two or one for both.
"""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.bloom import FUSED, MATRICES, NORMS
from core_model.checkpoint.families.decoders import (
    DecoderHeads,
    DecoderKeys,
    architectures,
    decoder_family,
    fused_by_head,
)
from core_model.checkpoint.families.family import Row, layer_rows, name_table, read_sizes, row
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.checkpoint.families.plan import Plan, read_plan, side_by_side, write_keys
from core_model.checkpoint.families.rotary import RopeKeys, read_rotary, write_rotary
from core_model.config import AlibiPositions, ModelConfig, RelativePositions, RotaryPositions, StackConfig
from core_model.errors import ConfigError

_HEADS = DecoderHeads(table="word_embeddings.weight")
_PLACES = {
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_key_heads": "num_kv_heads",
    "d_model": "hidden_size",
    "d_hidden": "ffn_hidden_size",
    "vocab_size": "vocab_size",
    "max_length": "max_position_embeddings",
    "activation": "activation",
    "eps": "layer_norm_epsilon",
    "attention_dropout": "attention_dropout",
    "residual_dropout": "hidden_dropout",
}


@dataclass(frozen=True, kw_only=True)
class FalconKeys(DecoderKeys):
    """The keys of config.json that decide what is computed."""

    hidden_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    new_decoder_architecture: bool | None = False
    num_kv_heads: Count | None = None
    num_ln_in_parallel_attn: Count | None = None
    multi_query: bool | None = True
    parallel_attn: bool | None = True
    alibi: bool | None = False
    bias: bool | None = False
    ffn_hidden_size: Count | None = None
    activation: str = "gelu"
    layer_norm_epsilon: Positive = 1e-5
    max_position_embeddings: Count = 2048
    rope_theta: Positive | None = None
    rope_scaling: RopeKeys | None = None
    rope_parameters: RopeKeys | None = None
    hidden_dropout: Rate = 0.0
    attention_dropout: Rate = 0.0

    @property
    def n_key_heads(self) -> int:
        """Key heads; the key that counts them is read by the new architecture only."""
        if self.new_decoder_architecture:
            return self.num_kv_heads or self.num_attention_heads
        return 1 if self.multi_query else self.num_attention_heads

    @property
    def shares_norm(self) -> bool:
        """Whether attention and feed-forward side by side read the same norm."""
        return self.num_ln_in_parallel_attn == 1 if self.new_decoder_architecture else bool(self.parallel_attn)


def _read(keys: FalconKeys) -> StackConfig:
    if keys.new_decoder_architecture and not keys.parallel_attn:
        raise ConfigError(
            "parallel_attn is false and new_decoder_architecture is true in config.json: the new architecture always "
            "has attention beside the feed-forward"
        )
    plan = read_plan(keys, _PLACES, n_key_heads=keys.n_key_heads, bias=bool(keys.bias))
    attention = plan.attention(position=_read_positions(keys, plan))
    layer = plan.layer(attention=attention, parallel=bool(keys.parallel_attn))
    return plan.stack([side_by_side(layer) if keys.shares_norm else layer] * plan.n_layers)


def _read_positions(keys: FalconKeys, plan: Plan) -> RelativePositions:
    """Rotary positions, or ALiBi as transformers computes it when it shows attention.

    The penalty is rounded to bfloat16, scaled as the scores are, and counted twice: once with the scores, once with the
    mask. (Its fused attention, which shows nothing, counts it once.)
    """
    if keys.alibi:
        return AlibiPositions(scale=2 * plan.head_size**-0.5, rounded=True)
    return read_rotary(
        keys.rope_parameters or keys.rope_scaling,
        head_size=plan.head_size,
        theta=keys.rope_theta,
        max_length=keys.max_position_embeddings,
    )


def _write(config: ModelConfig) -> FalconKeys:
    layer = config.output_stack.layers[0]
    attention, position = layer.attention, layer.attention.position
    rope = write_rotary(position) if isinstance(position, RotaryPositions) else None
    is_grouped = 1 < attention.n_key_heads < attention.n_heads
    is_new = layer.parallel and (is_grouped or not layer.shared_norm)
    return FalconKeys(
        **write_keys(config, _PLACES),
        new_decoder_architecture=is_new,
        num_ln_in_parallel_attn=(1 if layer.shared_norm else 2) if is_new else None,
        multi_query=attention.n_key_heads == 1,
        parallel_attn=layer.parallel,
        alibi=isinstance(position, AlibiPositions),
        bias=attention.query_bias,
        rope_parameters=rope,
    )


def _layers(config: ModelConfig) -> tuple[Row, ...]:
    layer = config.output_stack.layers[0]
    two_norms = {"ln_attn.*": "attention_residual.before.*", "ln_mlp.*": "feed_forward_residual.before.*"}
    norms = two_norms if layer.parallel and not layer.shared_norm else NORMS
    return (*layer_rows("h.{i}", {**norms, **MATRICES}), *fused_by_head("h.{i}", FUSED)(config))


FAMILY = decoder_family(
    _HEADS,
    _read,
    _write,
    key="falcon",
    label="Falcon",
    architectures=architectures("Falcon", "sequence_classes", "token_classes", "answer_span"),
    keys=FalconKeys,
    sizes=read_sizes(
        {
            "vocab_size": (_HEADS.table, 0),
            "hidden_size": (_HEADS.table, 1),
            "ffn_hidden_size": ("h.0.mlp.dense_h_to_4h.weight", 0),
        },
        num_hidden_layers="h.{i}.self_attention.dense.weight",
    ),
    places=_PLACES,
    names=name_table(
        _HEADS,
        row("ln_f.*", "decoder.final_norm.*"),
        of_config=_layers,
        prefixes=("transformer.",),
        buffers=(r"h\.\d+\.self_attention\.rotary_emb\.inv_freq",),
    ),
    aliases={"n_embed": "hidden_size"},
)
