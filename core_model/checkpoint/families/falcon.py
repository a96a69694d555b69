"""Falcon (Almazrouei et al. 2023) of three makes.

RW: ALiBi, one head after the other. 7B: one key head for all, attention beside feed-forward behind one norm. 40B and
later ("new decoder architecture"): grouped key heads, a norm for each of the two or one for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
from core_model.checkpoint.families.rotary import RopeKeys, read_rotary, write_rotary
from core_model.config import (
    AlibiPositions,
    AttentionSpec,
    FeedForwardSpec,
    LayerSpec,
    ModelConfig,
    NormSpec,
    RelativePositions,
    ResidualSpec,
    RotaryPositions,
    StackConfig,
    TokenEmbedding,
)
from core_model.errors import ConfigError

_HEADS = DecoderHeads(table="word_embeddings.weight")


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


def _read(keys: FalconKeys, weights: Weights) -> ModelConfig:
    if keys.new_decoder_architecture and not keys.parallel_attn:
        raise ConfigError(
            "parallel_attn is false and new_decoder_architecture is true in config.json: the new architecture always "
            "has attention beside the feed-forward"
        )
    norm = NormSpec(eps=keys.layer_norm_epsilon)
    bias = bool(keys.bias)
    layer = LayerSpec(
        attention=_read_attention(keys, equal_heads(keys, "hidden_size", "num_attention_heads")),
        attention_residual=ResidualSpec(before=norm, dropout=keys.hidden_dropout),
        feed_forward=FeedForwardSpec(
            d_hidden=keys.ffn_hidden_size or 4 * keys.hidden_size,
            activation=activation("activation", keys.activation),
            bias=bias,
        ),
        feed_forward_residual=ResidualSpec(
            before=None if keys.shares_norm else norm,
            dropout=keys.hidden_dropout,
        ),
        parallel=bool(keys.parallel_attn),
        shared_norm=keys.shares_norm,
    )
    decoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.hidden_size),
        layers=(layer,) * keys.num_hidden_layers,
        final_norm=norm,
    )
    return ModelConfig(decoder=decoder, head=_HEADS.read(FAMILY, keys, weights), special=keys.special)


def _read_attention(keys: FalconKeys, head_size: int) -> AttentionSpec:
    bias = bool(keys.bias)
    if keys.num_attention_heads % keys.n_key_heads:
        raise ConfigError(
            f"num_kv_heads is {keys.n_key_heads} in config.json: it must divide num_attention_heads, "
            f"{keys.num_attention_heads}"
        )
    return AttentionSpec(
        n_heads=keys.num_attention_heads,
        n_key_heads=keys.n_key_heads,
        head_size=head_size,
        scale=head_size**-0.5,
        mask=CAUSAL,
        position=_read_positions(keys, head_size),
        query_bias=bias,
        key_bias=bias,
        value_bias=bias,
        output_bias=bias,
        dropout=keys.attention_dropout,
    )


def _read_positions(keys: FalconKeys, head_size: int) -> RelativePositions:
    """Rotary positions, or ALiBi as transformers computes it when it shows attention.

    The penalty is rounded to bfloat16, scaled as the scores are, and counted twice: once with the scores, once with the
    mask. (Its fused attention, which shows nothing, counts it once.)
    """
    if keys.alibi:
        return AlibiPositions(scale=2 * head_size**-0.5, rounded=True)
    return read_rotary(
        keys.rope_parameters or keys.rope_scaling,
        head_size=head_size,
        theta=keys.rope_theta,
        max_length=keys.max_position_embeddings,
    )


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    layer, attention = stack.layers[0], stack.layers[0].attention
    rope = write_rotary(attention.position) if isinstance(attention.position, RotaryPositions) else None
    is_grouped = 1 < attention.n_key_heads < attention.n_heads
    is_new = layer.parallel and (is_grouped or not layer.shared_norm)
    keys = FalconKeys(
        **common_keys(config),
        hidden_size=stack.d_model,
        num_hidden_layers=stack.n_layers,
        num_attention_heads=attention.n_heads,
        new_decoder_architecture=is_new,
        num_kv_heads=attention.n_key_heads,
        num_ln_in_parallel_attn=(1 if layer.shared_norm else 2) if is_new else None,
        multi_query=attention.n_key_heads == 1,
        parallel_attn=layer.parallel,
        alibi=isinstance(attention.position, AlibiPositions),
        bias=attention.query_bias,
        ffn_hidden_size=layer.feed_forward.d_hidden,
        activation=activation_name(layer.feed_forward.activation),
        layer_norm_epsilon=stack.final_norm.eps if stack.final_norm else 1e-5,
        max_position_embeddings=(rope and rope.original_max_position_embeddings) or 2048,
        rope_parameters=rope,
        hidden_dropout=layer.attention_residual.dropout,
        attention_dropout=attention.dropout,
    )
    return foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "h.{i}", "decoder.layers.{i}"
    layer = config.output_stack.layers[0]
    has_two = layer.parallel and not layer.shared_norm
    first, second = ("ln_attn", "ln_mlp") if has_two else ("input_layernorm", "post_attention_layernorm")
    return (
        *_HEADS.rows(config.head),
        row(f"{theirs}.{first}.*", f"{ours}.attention_residual.before.*"),
        row(
            f"{theirs}.self_attention.query_key_value.*",
            *(f"{ours}.attention.{part}.*" for part in ("query", "key", "value")),
            conversion=Joined(n_groups=layer.attention.n_key_heads),
        ),
        row(f"{theirs}.self_attention.dense.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.{second}.*", f"{ours}.feed_forward_residual.before.*"),
        row(f"{theirs}.mlp.dense_h_to_4h.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.mlp.dense_4h_to_h.*", f"{ours}.feed_forward.output.*"),
        row("ln_f.*", "decoder.final_norm.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size("word_embeddings.weight", 0),
        "hidden_size": weights.size("word_embeddings.weight", 1),
        "num_hidden_layers": weights.n_layers("h.{i}.self_attention.dense.weight") or None,
        "ffn_hidden_size": weights.size("h.0.mlp.dense_h_to_4h.weight", 0),
    }


FAMILY = Family(
    key="falcon",
    label="Falcon",
    model_types=("falcon",),
    architectures=architectures("Falcon", "sequence_classes", "token_classes", "answer_span"),
    keys=FalconKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "n_key_heads": "num_kv_heads",
        "d_model": "hidden_size",
        "d_hidden": "ffn_hidden_size",
        "vocab_size": "vocab_size",
        "max_length": "max_position_embeddings",
        "activation": "activation",
        "eps": "layer_norm_epsilon",
    },
    names=NameTable(
        rows=_rows,
        prefixes=("transformer.",),
        roots=_HEADS.roots,
        buffers=(r"h\.\d+\.self_attention\.rotary_emb\.inv_freq",),
    ),
    aliases={"n_embed": "hidden_size"},
)
