"""What the families built like Llama have in common: keys of config.json, the parts of a layer, names of tensors.

Rotary positions, grouped queries, a gated feed-forward, norms before both. A family says where it differs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families.conversion import SAME, Conversion
from core_model.checkpoint.families.decoders import CAUSAL, DecoderHeads, DecoderKeys, common_keys, foreign
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Positive, Rate, activation, activation_name
from core_model.checkpoint.families.rotary import DEFAULT_BASE, RopeKeys, read_rotary, rotary_share, write_rotary
from core_model.checkpoint.wording import shown
from core_model.config import (
    AttentionSpec,
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    RotaryPositions,
    StackConfig,
    TokenEmbedding,
)
from core_model.errors import ConfigError

HEADS = DecoderHeads(table="embed_tokens.weight", token_classes="score")
EVERY_TASK = ("sequence_classes", "token_classes", "answer_span")


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

    @property
    def n_key_heads(self) -> int:
        """Number of key heads."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head_size(self) -> int:
        """Size of a head, of its own or a share of the width; ConfigError when the width cannot be shared out."""
        if self.head_dim is None and self.hidden_size % self.num_attention_heads:
            raise ConfigError(
                f"num_attention_heads is {shown(self.num_attention_heads)} and hidden_size is "
                f"{shown(self.hidden_size)} in config.json: without head_dim, the second must be divisible by the first"
            )
        return self.head_dim or self.hidden_size // self.num_attention_heads


@dataclass(frozen=True, kw_only=True)
class RmsKeys(LlamaLikeKeys):
    """The keys of the families that normalise by the root mean square."""

    rms_norm_eps: Positive = 1e-6

    @property
    def norm(self) -> NormSpec:
        """The norm of every place."""
        return NormSpec(kind="rms", eps=self.rms_norm_eps, bias=False)


def rotary(keys: LlamaLikeKeys, *, base: float = DEFAULT_BASE, share: float = 1.0) -> RotaryPositions:
    """The positions the keys describe in either dialect; `base` and `share` of a head are meant where neither says."""
    rope = keys.rope_scaling or keys.rope_parameters or RopeKeys()
    rope = replace(
        rope,
        partial_rotary_factor=rope.partial_rotary_factor or keys.partial_rotary_factor or share,
        original_max_position_embeddings=(
            keys.original_max_position_embeddings or rope.original_max_position_embeddings
        ),
    )
    return read_rotary(
        rope, head_size=keys.head_size, theta=keys.rope_theta or base, max_length=keys.max_position_embeddings
    )


def attention(
    keys: LlamaLikeKeys, *, qkv_bias: bool = False, output_bias: bool = False, **changes: object
) -> AttentionSpec:
    """Llama's attention; `changes` are other fields of the spec."""
    if keys.num_attention_heads % keys.n_key_heads:
        raise ConfigError(
            f"num_key_value_heads is {shown(keys.n_key_heads)} in config.json: it must divide num_attention_heads, "
            f"{shown(keys.num_attention_heads)}"
        )
    if "position" not in changes:
        changes["position"] = rotary(keys)
    settings = {
        "n_heads": keys.num_attention_heads,
        "n_key_heads": keys.n_key_heads,
        "head_size": keys.head_size,
        "scale": keys.head_size**-0.5,
        "mask": CAUSAL,
        "query_bias": qkv_bias,
        "key_bias": qkv_bias,
        "value_bias": qkv_bias,
        "output_bias": output_bias,
        "dropout": keys.attention_dropout or 0.0,
        **changes,
    }
    return AttentionSpec(**settings)  # pyright: ignore[reportArgumentType]


def feed_forward(keys: LlamaLikeKeys, *, act: str = "hidden_act", **changes: object) -> FeedForwardSpec:
    """Llama's gated feed-forward, its activation named by the key `act`; `changes` are other fields of the spec."""
    settings = {
        "d_hidden": keys.intermediate_size,
        "activation": activation(act, getattr(keys, act)),
        "gated": True,
        "bias": False,
        **changes,
    }
    return FeedForwardSpec(**settings)  # pyright: ignore[reportArgumentType]


def pre_norm(attention: AttentionSpec, feed_forward: FeedForwardSpec, norm: NormSpec) -> LayerSpec:
    """Llama's layer: a norm before each of the two."""
    residual = ResidualSpec(before=norm)
    return LayerSpec(
        attention=attention, attention_residual=residual, feed_forward=feed_forward, feed_forward_residual=residual
    )


def stack(
    keys: LlamaLikeKeys, layers: Iterable[LayerSpec], norm: NormSpec, *, scale: float = 1.0, dropout: float = 0.0
) -> StackConfig:
    """The decoder of these layers: token vectors times `scale`, `norm` at the end."""
    return StackConfig(
        d_model=keys.hidden_size,
        embedding=TokenEmbedding(
            vocab_size=keys.vocab_size, d_embedding=keys.hidden_size, scale=scale, dropout=dropout
        ),
        layers=tuple(layers),
        final_norm=norm,
    )


def shared_keys(config: ModelConfig) -> dict[str, Any]:
    """The `LlamaLikeKeys` of a config, by name; what differs between layers is read from the first."""
    layer = config.output_stack.layers[0]
    return {
        **common_keys(config),
        **rope_keys(config),
        "hidden_size": config.output_stack.d_model,
        "intermediate_size": layer.feed_forward.d_hidden,
        "num_hidden_layers": config.output_stack.n_layers,
        "num_attention_heads": layer.attention.n_heads,
        "num_key_value_heads": layer.attention.n_key_heads,
        "head_dim": layer.attention.head_size,
        "hidden_act": activation_name(layer.feed_forward.activation),
        "attention_dropout": layer.attention.dropout,
    }


def final_eps(config: ModelConfig) -> float:
    """The epsilon of the last norm."""
    norm = config.output_stack.final_norm
    return norm.eps if norm else 1e-6


def rms_keys(config: ModelConfig) -> dict[str, Any]:
    """The `RmsKeys` of a config, by name."""
    return {**shared_keys(config), "rms_norm_eps": final_eps(config)}


def rope_keys(config: ModelConfig) -> dict[str, Any]:
    """The keys about positions, in the dialects of transformers 4 and 5, of the first layer that has positions."""
    attentions = [layer.attention for layer in config.output_stack.layers]
    rotating = [(spec.position, spec.head_size) for spec in attentions if isinstance(spec.position, RotaryPositions)]
    if not rotating:
        return {}
    position, head_size = rotating[0]
    share = rotary_share(position.n_rotated, head_size)
    rope = replace(write_rotary(position), partial_rotary_factor=share)
    return {
        "max_position_embeddings": rope.original_max_position_embeddings or 2048,  # rotary positions have no last one
        "rope_theta": position.base,
        "partial_rotary_factor": share,
        "rope_scaling": rope if position.scaling else None,
        "rope_parameters": rope,
    }


def layer_rows(names: Mapping[str, str], conversion: Conversion = SAME) -> tuple[Row, ...]:
    """Lines of a name table from names within a layer, theirs to ours."""
    return tuple(
        row(f"layers.{{i}}.{theirs}", f"decoder.layers.{{i}}.{ours}", conversion=conversion)
        for theirs, ours in names.items()
    )


PROJECTIONS = layer_rows(
    {
        "self_attn.q_proj.*": "attention.query.*",
        "self_attn.k_proj.*": "attention.key.*",
        "self_attn.v_proj.*": "attention.value.*",
        "self_attn.o_proj.*": "attention.output.*",
    }
)
ATTENTION = (
    *PROJECTIONS,
    *layer_rows(
        {"self_attn.q_norm.*": "attention.query_norm.*", "self_attn.k_norm.*": "attention.key_norm.*"},
    ),
)
GATED = layer_rows(
    {
        "mlp.gate_proj.*": "feed_forward.gate.*",
        "mlp.up_proj.*": "feed_forward.input.*",
        "mlp.down_proj.*": "feed_forward.output.*",
    }
)
PRE_NORMS = layer_rows(
    {
        "input_layernorm.*": "attention_residual.before.*",
        "post_attention_layernorm.*": "feed_forward_residual.before.*",
    }
)
BRANCH_NORMS = layer_rows(
    {
        "input_layernorm.*": "attention_residual.before.*",
        "post_attention_layernorm.*": "attention_residual.after.*",
        "pre_feedforward_layernorm.*": "feed_forward_residual.before.*",
        "post_feedforward_layernorm.*": "feed_forward_residual.after.*",
    }
)


def name_table(
    *lines: Row,
    of_config: Callable[[ModelConfig], Iterable[Row]] = lambda config: (),
    heads: DecoderHeads = HEADS,
    final_norm: str = "norm",
    **others: Any,
) -> NameTable:
    """A table of these lines, those that depend on the config, and the ends of the stack; `others` are more fields."""

    def rows(config: ModelConfig) -> tuple[Row, ...]:
        ends = row(f"{final_norm}.*", "decoder.final_norm.*")
        return (*heads.rows(config.head), *lines, *of_config(config), ends)

    return NameTable(
        rows=rows,
        prefixes=("model.", "transformer."),
        roots=heads.roots,
        buffers=(r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq", r"layers\.\d+\.self_attn\.(bias|masked_bias)"),
        **others,
    )


NAMES = name_table(*ATTENTION, *GATED, *PRE_NORMS)


def family(
    *,
    key: str,
    label: str,
    architectures: Mapping[str, str | None],
    keys: type,
    read: Callable[[Any], StackConfig],
    write: Callable[[ModelConfig], LlamaLikeKeys],
    read_head: Callable[[Any, HeadSpec], HeadSpec] = lambda keys, head: head,
    names: NameTable = NAMES,
    heads: DecoderHeads = HEADS,
    questions: str = "model.",
    eps: str | None = "rms_norm_eps",
    places: Mapping[str, str] = {},
    tied_by_default: bool = False,
    **others: Any,
) -> Family:
    """The family whose keys `read` makes a decoder of, and `write` the inverse.

    `read_head` changes the output head of a language model; `questions` is the prefix of names in a model that answers
    questions; `eps` the key of the norms' epsilon; `places` are keys called otherwise; `others` are more fields of
    Family.
    """

    def read_model(found: Any, weights: Weights) -> ModelConfig:
        head = heads.read(made, found, weights)
        if head is not None and head.task == "language_model":
            head = read_head(found, head)
        return ModelConfig(decoder=read(found), head=head, special=found.special)

    def write_model(config: ModelConfig) -> Foreign:
        return foreign(made, write(config), config)

    made = Family(
        key=key,
        label=label,
        model_types=(key,),
        architectures=architectures,
        keys=keys,
        read=read_model,
        write=write_model,
        sizes=_sizes,
        places={**_PLACES, **({"eps": eps} if eps else {}), **places},
        names=replace(
            names, written_prefixes={name: questions for name, task in architectures.items() if task == "answer_span"}
        ),
        tied_by_default=tied_by_default,
        **others,
    )
    return made


_PLACES = {
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "n_key_heads": "num_key_value_heads",
    "head_size": "head_dim",
    "d_model": "hidden_size",
    "d_hidden": "intermediate_size",
    "vocab_size": "vocab_size",
    "max_length": "max_position_embeddings",
    "activation": "hidden_act",
}


def _sizes(weights: Weights) -> Mapping[str, object]:
    layers = {int(found[1]) for name in weights.shapes if (found := re.match(r"layers\.(\d{1,6})\.", name))}
    n_layers = next((i for i in range(len(layers)) if i not in layers), len(layers))
    return {
        "vocab_size": weights.size(HEADS.table, 0),
        "hidden_size": weights.size(HEADS.table, 1),
        "intermediate_size": weights.size("layers.0.mlp.up_proj.weight", 0),
        "num_hidden_layers": n_layers or None,
    }
