"""GPT-J (Wang and Komatsuzaki 2021): rotary positions of neighbours, attention beside feed-forward behind one norm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
from core_model.errors import ConfigError

HEADS = DecoderHeads(table="wte.weight", bias=True)


@dataclass(frozen=True, kw_only=True)
class GptjKeys(DecoderKeys):
    """The keys of config.json that decide what is computed."""

    n_embd: Count
    n_layer: Count
    n_head: Count
    n_positions: Count = 2048
    rotary_dim: Count = 64
    n_inner: Count | None = None
    activation_function: str = "gelu_new"
    layer_norm_epsilon: Positive = 1e-5
    embd_pdrop: Rate = 0.0
    attn_pdrop: Rate = 0.0
    resid_pdrop: Rate = 0.0


def read_stack(keys: GptjKeys) -> StackConfig:
    """The decoder that these keys describe; CodeGen's are the same."""
    head_size = equal_heads(keys, "n_embd", "n_head")
    if keys.rotary_dim > head_size or keys.rotary_dim % 2:
        raise ConfigError(
            f"rotary_dim is {keys.rotary_dim} in config.json: expected an even number of at most {head_size}, "
            "the size of a head"
        )
    norm = NormSpec(eps=keys.layer_norm_epsilon)
    layer = LayerSpec(
        attention=multi_head(
            keys.n_embd,
            keys.n_head,
            mask=CAUSAL,
            position=RotaryPositions(n_rotated=keys.rotary_dim, layout="interleaved"),
            query_bias=False,
            key_bias=False,
            value_bias=False,
            output_bias=False,
            dropout=keys.attn_pdrop,
        ),
        attention_residual=ResidualSpec(before=norm, dropout=keys.resid_pdrop),
        feed_forward=FeedForwardSpec(
            d_hidden=keys.n_inner or 4 * keys.n_embd,
            activation=activation("activation_function", keys.activation_function),
        ),
        feed_forward_residual=ResidualSpec(dropout=keys.resid_pdrop),
        parallel=True,
        shared_norm=True,
    )
    return StackConfig(
        d_model=keys.n_embd,
        embedding=TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.n_embd, dropout=keys.embd_pdrop),
        layers=(layer,) * keys.n_layer,
        final_norm=norm,
    )


def _read(keys: GptjKeys, weights: Weights) -> ModelConfig:
    return ModelConfig(decoder=read_stack(keys), head=HEADS.read(FAMILY, keys, weights), special=keys.special)


def write_keys(config: ModelConfig) -> GptjKeys:
    """The keys that describe a config."""
    stack = config.output_stack
    layer, position = stack.layers[0], stack.layers[0].attention.position
    return GptjKeys(
        **common_keys(config),
        n_embd=stack.d_model,
        n_layer=stack.n_layers,
        n_head=layer.attention.n_heads,
        rotary_dim=position.n_rotated if isinstance(position, RotaryPositions) else layer.attention.head_size,
        n_inner=layer.feed_forward.d_hidden,
        activation_function=activation_name(layer.feed_forward.activation),
        layer_norm_epsilon=stack.final_norm.eps if stack.final_norm else 1e-5,
        embd_pdrop=stack.tokens.dropout,
        attn_pdrop=layer.attention.dropout,
        resid_pdrop=layer.attention_residual.dropout,
    )


def _write(config: ModelConfig) -> Foreign:
    return foreign(FAMILY, write_keys(config), config)


def rows(config: ModelConfig, projections: tuple[Row, ...]) -> tuple[Row, ...]:
    """The name table around the lines for queries, keys and values."""
    theirs, ours = "h.{i}", "decoder.layers.{i}"
    return (
        *HEADS.rows(config.head),
        row(f"{theirs}.ln_1.*", f"{ours}.attention_residual.before.*"),
        *projections,
        row(f"{theirs}.attn.out_proj.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.mlp.fc_in.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.mlp.fc_out.*", f"{ours}.feed_forward.output.*"),
        row("ln_f.*", "decoder.final_norm.*"),
    )


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "h.{i}.attn", "decoder.layers.{i}.attention"
    projections = (
        row(f"{theirs}.q_proj.*", f"{ours}.query.*"),
        row(f"{theirs}.k_proj.*", f"{ours}.key.*"),
        row(f"{theirs}.v_proj.*", f"{ours}.value.*"),
    )
    return rows(config, projections)


def sizes(weights: Weights) -> Mapping[str, object]:
    """What the shapes tell."""
    return {
        "vocab_size": weights.size("wte.weight", 0),
        "n_embd": weights.size("wte.weight", 1),
        "n_layer": weights.n_layers("h.{i}.ln_1.weight") or None,
        "n_inner": weights.size("h.0.mlp.fc_in.weight", 0),
    }


PLACES = {
    "n_layers": "n_layer",
    "n_heads": "n_head",
    "d_model": "n_embd",
    "d_hidden": "n_inner",
    "vocab_size": "vocab_size",
    "max_length": "n_positions",
    "activation": "activation_function",
    "eps": "layer_norm_epsilon",
}
ALIASES = {
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}

FAMILY = Family(
    key="gptj",
    label="GPT-J",
    model_types=("gptj",),
    architectures=architectures("GPTJ", "sequence_classes", "answer_span"),
    keys=GptjKeys,
    read=_read,
    write=_write,
    sizes=sizes,
    places=PLACES,
    names=NameTable(
        rows=_rows,
        prefixes=("transformer.",),
        roots=HEADS.roots,
        buffers=(r"h\.\d+\.attn\.(masked_)?bias", r"h\.\d+\.attn\.embed_positions"),
    ),
    aliases=ALIASES,
    markers=(r"(transformer\.)?h\.0\.attn\.q_proj\.weight", r"(transformer\.)?h\.0\.mlp\.fc_in\.weight"),
    tied_by_default=False,
)
