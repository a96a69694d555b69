"""What the families built like Llama have in common: keys of config.json, the plan of a decoder, names of tensors.

Rotary positions, grouped queries, a gated feed-forward, norms before both, no biases. A family says where it differs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families.decoders import DecoderHeads, DecoderKeys, decoder_family
from core_model.checkpoint.families.family import Family, NameTable, Row, Weights, layer_rows, name_table, row
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.checkpoint.families.plan import USUAL_PLACES, Plan, read_plan, write_keys
from core_model.checkpoint.families.rotary import DEFAULT_BASE, RopeKeys, read_rotary, rotary_share, write_rotary
from core_model.config import ModelConfig, NormSpec, RotaryPositions, StackConfig

HEADS = DecoderHeads(table="embed_tokens.weight", token_classes="score")
EVERY_TASK = ("sequence_classes", "token_classes", "answer_span")
PLACES = {
    **USUAL_PLACES,
    "n_key_heads": "num_key_value_heads",
    "head_size": "head_dim",
    "activation": "hidden_act",
    "attention_dropout": "attention_dropout",
}
RMS_PLACES = {**PLACES, "eps": "rms_norm_eps"}


@dataclass(frozen=True, kw_only=True)
class LlamaLikeKeys(DecoderKeys):
    """The keys of config.json that all these families have."""

    hidden_size: Count
    intermediate_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    num_key_value_heads: Count | None = None
    head_dim: Count | None = None
    hidden_act: str | None = "silu"
    max_position_embeddings: Count = 2048
    original_max_position_embeddings: Count | None = None
    rope_theta: Positive | None = None
    partial_rotary_factor: Positive | None = None
    rope_scaling: RopeKeys | None = None
    rope_parameters: RopeKeys | None = None
    attention_dropout: Rate | None = 0.0


@dataclass(frozen=True, kw_only=True)
class RmsKeys(LlamaLikeKeys):
    """The keys of the families that normalise by the root mean square."""

    rms_norm_eps: Positive = 1e-6

    @property
    def norm(self) -> NormSpec:
        """The norm of every place."""
        return NormSpec(kind="rms", eps=self.rms_norm_eps, bias=False)


def rotary(
    keys: LlamaLikeKeys, head_size: int, *, base: float = DEFAULT_BASE, share: float | None = None
) -> RotaryPositions:
    """The positions the keys describe in either dialect; `base` and `share` of a head are meant where neither says.

    Where a family has no share whole heads turn, whatever the keys say: transformers reads theirs in no other family.
    """
    rope = keys.rope_scaling or keys.rope_parameters or RopeKeys()
    rope = replace(
        rope,
        partial_rotary_factor=share and (rope.partial_rotary_factor or keys.partial_rotary_factor or share),
        original_max_position_embeddings=(
            keys.original_max_position_embeddings or rope.original_max_position_embeddings
        ),
    )
    return read_rotary(
        rope, head_size=head_size, theta=keys.rope_theta or base, max_length=keys.max_position_embeddings
    )


def llama_plan(
    keys: LlamaLikeKeys,
    places: Mapping[str, str],
    *,
    base: float = DEFAULT_BASE,
    share: float | None = None,
    **changes: Any,
) -> Plan:
    """Llama's plan: `base` and `share` are those of `rotary`, `changes` other fields."""
    plan = read_plan(keys, places, **{"gated": True, "bias": False, **changes})
    return replace(plan, position=rotary(keys, plan.head_size, base=base, share=share))


def rms_plan(keys: RmsKeys, places: Mapping[str, str] = RMS_PLACES, **more: Any) -> Plan:
    """The same with the keys' own norm."""
    return llama_plan(keys, places, norm=keys.norm, **more)


def llama_keys(config: ModelConfig, places: Mapping[str, str] = RMS_PLACES) -> dict[str, Any]:
    """The keys of a config, by name; what differs between layers is read from the first."""
    return {**write_keys(config, places), **_rope_keys(config)}


def _rope_keys(config: ModelConfig) -> dict[str, Any]:
    """The keys about positions, in the dialects of transformers 4 and 5, of the first layer that has positions."""
    attentions = [layer.attention for layer in config.output_stack.layers]
    rotating = [(spec.position, spec.head_size) for spec in attentions if isinstance(spec.position, RotaryPositions)]
    if not rotating:
        return {}
    position, head_size = rotating[0]
    share = rotary_share(position.n_rotated, head_size)
    rope = replace(write_rotary(position), partial_rotary_factor=share)
    return {
        "rope_theta": position.base,
        "partial_rotary_factor": share,
        "rope_scaling": rope if position.scaling else None,
        "rope_parameters": rope,
    }


PROJECTIONS = layer_rows(
    "layers.{i}.self_attn",
    {
        "q_proj.*": "attention.query.*",
        "k_proj.*": "attention.key.*",
        "v_proj.*": "attention.value.*",
        "o_proj.*": "attention.output.*",
    },
)
ATTENTION = (
    *PROJECTIONS,
    *layer_rows("layers.{i}.self_attn", {"q_norm.*": "attention.query_norm.*", "k_norm.*": "attention.key_norm.*"}),
)
GATED = layer_rows(
    "layers.{i}.mlp",
    {
        "gate_proj.*": "feed_forward.gate.*",
        "up_proj.*": "feed_forward.input.*",
        "down_proj.*": "feed_forward.output.*",
    },
)
PRE_NORMS = layer_rows(
    "layers.{i}",
    {
        "input_layernorm.*": "attention_residual.before.*",
        "post_attention_layernorm.*": "feed_forward_residual.before.*",
    },
)
BRANCH_NORMS = layer_rows(
    "layers.{i}",
    {
        "input_layernorm.*": "attention_residual.before.*",
        "post_attention_layernorm.*": "attention_residual.after.*",
        "pre_feedforward_layernorm.*": "feed_forward_residual.before.*",
        "post_feedforward_layernorm.*": "feed_forward_residual.after.*",
    },
)


def llama_names(*lines: Row, heads: DecoderHeads = HEADS, final_norm: str = "norm", **others: Any) -> NameTable:
    """A table of these lines and the ends of the stack; `others` are what `name_table` takes."""
    settings = {
        "prefixes": ("model.", "transformer."),
        "buffers": (r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq", r"layers\.\d+\.self_attn\.(bias|masked_bias)"),
        **others,
    }
    return name_table(heads, *lines, row(f"{final_norm}.*", "decoder.final_norm.*"), **settings)


NAMES = llama_names(*ATTENTION, *GATED, *PRE_NORMS)
SPANS_APART = {"answer_span": "transformer."}
"""The `written_prefixes` of families in which a model that answers questions is called otherwise than all others."""


def llama_family(
    read: Callable[[Any], StackConfig],
    write: Callable[[ModelConfig], LlamaLikeKeys],
    *,
    heads: DecoderHeads = HEADS,
    **others: Any,
) -> Family:
    """The family whose keys `read` makes a decoder of, and `write` the inverse; `others` are the fields of Family."""
    usual = {"sizes": _sizes, "places": RMS_PLACES, "names": NAMES, "tied_by_default": False}
    return decoder_family(heads, read, write, **{**usual, **others})


def _sizes(weights: Weights) -> Mapping[str, object]:
    layers = {int(found[1]) for name in weights.shapes if (found := re.match(r"layers\.(\d{1,6})\.", name))}
    n_layers = next((i for i in range(len(layers)) if i not in layers), len(layers))
    return {
        "vocab_size": weights.size(HEADS.table, 0),
        "hidden_size": weights.size(HEADS.table, 1),
        "intermediate_size": weights.size("layers.0.mlp.up_proj.weight", 0),
        "num_hidden_layers": n_layers or None,
    }
