"""MPT (MosaicML 2023): ALiBi, no biases, queries, keys and values fused and perhaps clipped."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

from core_model.checkpoint.families.decoders import DecoderHeads, DecoderKeys, architectures, decoder_family
from core_model.checkpoint.families.family import QUERY_KEY_VALUE, Weights, layer_rows, name_table, read_sizes, row
from core_model.checkpoint.families.fields import Count, CountOrNone, Positive, Rate
from core_model.checkpoint.families.plan import read_plan, write_keys
from core_model.config import AlibiPositions, ModelConfig, NormSpec, StackConfig
from core_model.errors import ConfigError
from core_model.wording import shown

_COMPUTED_MAX_BIAS = 8.0
"""The alibi_bias_max that transformers computes with."""
_HEADS = DecoderHeads(table="wte.weight")
_PLACES = {
    "n_layers": "n_layers",
    "n_heads": "n_heads",
    "d_model": "d_model",
    "vocab_size": "vocab_size",
    "max_length": "max_seq_len",
    "eps": "layer_norm_epsilon",
    "embedding_dropout": "emb_pdrop",
}


@dataclass(frozen=True, kw_only=True)
class MptAttentionKeys:
    """The keys of attn_config.

    `alibi_bias_max` is what the models were trained with (16 in StoryWriter).
    """

    attn_type: str = "multihead_attention"
    attn_pdrop: Rate = 0.0
    clip_qkv: CountOrNone | Positive | None = None
    softmax_scale: Positive | None = None
    prefix_lm: bool = False
    qk_ln: bool = False
    alibi: bool = True
    alibi_bias_max: Positive = _COMPUTED_MAX_BIAS


@dataclass(frozen=True, kw_only=True)
class MptKeys(DecoderKeys):
    """The keys of config.json that decide what is computed."""

    d_model: Count
    n_layers: Count
    n_heads: Count
    max_seq_len: Count = 2048
    attn_config: MptAttentionKeys = MptAttentionKeys()
    logit_scale: float | str | None = None
    no_bias: bool = True
    norm_type: str = "low_precision_layernorm"
    layer_norm_epsilon: Positive = 1e-5
    emb_pdrop: Rate = 0.0
    resid_pdrop: Rate = 0.0


_ALWAYS: tuple[tuple[str, object], ...] = (
    ("attn_config.attn_type", "multihead_attention"),
    ("attn_config.prefix_lm", False),
    ("attn_config.qk_ln", False),
    ("attn_config.alibi", True),
    ("logit_scale", None),
    ("no_bias", True),
)
"""Keys that the first models' own code read and transformers does not, with the value that both compute alike."""


def _read(keys: MptKeys) -> StackConfig:
    for place, value in _ALWAYS:
        if (found := attrgetter(place)(keys)) != value:
            raise ConfigError(
                f"{place} is {shown(repr(found))} in config.json: an MPT is read only where it is {value}"
            )
    told = keys.attn_config
    plan = read_plan(
        keys,
        _PLACES,
        activation="gelu",
        position=AlibiPositions(max_bias=told.alibi_bias_max),
        norm=NormSpec(eps=keys.layer_norm_epsilon, bias=False),
        bias=False,
        attention_dropout=told.attn_pdrop,
        residual_dropout=told.attn_pdrop,
    )
    attention = plan.attention(scale=told.softmax_scale or plan.head_size**-0.5, clip=told.clip_qkv or None)
    return plan.stack([plan.layer(attention=attention)] * plan.n_layers)


def _remarks(keys: MptKeys, weights: Weights, config: ModelConfig) -> tuple[str, ...]:
    max_bias = keys.attn_config.alibi_bias_max
    if max_bias == _COMPUTED_MAX_BIAS:
        return ()
    return (
        f"alibi_bias_max is {max_bias:g} in config.json and used here, as the model's own code does: transformers "
        f"computes with {_COMPUTED_MAX_BIAS:g} whatever it says",
    )


def _write(config: ModelConfig) -> MptKeys:
    attention = config.output_stack.layers[0].attention
    position = attention.position
    told = MptAttentionKeys(
        attn_pdrop=_whole(attention.dropout),
        clip_qkv=attention.clip,
        softmax_scale=attention.scale,
        alibi_bias_max=_whole(position.max_bias) if isinstance(position, AlibiPositions) else 8,
    )
    return MptKeys(**write_keys(config, _PLACES), attn_config=told)


def _whole(value: float) -> float:
    """The value as a whole number where it is one: transformers takes no others for two of the keys."""
    return int(value) if value == int(value) else value


FAMILY = decoder_family(
    _HEADS,
    _read,
    _write,
    key="mpt",
    label="MPT",
    architectures=architectures("Mpt", "sequence_classes", "token_classes", "answer_span"),
    keys=MptKeys,
    remarks=_remarks,
    sizes=read_sizes(
        {"vocab_size": ("wte.weight", 0), "d_model": ("wte.weight", 1)}, n_layers="blocks.{i}.norm_1.weight"
    ),
    places=_PLACES,
    names=name_table(
        _HEADS,
        *layer_rows(
            "blocks.{i}",
            {
                "norm_1.*": "attention_residual.before.*",
                "attn.Wqkv.*": QUERY_KEY_VALUE,
                "attn.out_proj.*": "attention.output.*",
                "norm_2.*": "feed_forward_residual.before.*",
                "ffn.up_proj.*": "feed_forward.input.*",
                "ffn.down_proj.*": "feed_forward.output.*",
            },
        ),
        row("norm_f.*", "decoder.final_norm.*"),
        prefixes=("transformer.",),
    ),
    aliases={"hidden_size": "d_model", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"},
    markers=(r"(transformer\.)?blocks\.0\.attn\.Wqkv\.weight", r"(transformer\.)?blocks\.0\.ffn\.up_proj\.weight"),
)
