"""GPT-2 (Radford et al. 2019), as transformers stores it: [in, out] matrices, queries, keys and values fused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families.conversion import TRANSPOSED
from core_model.checkpoint.families.decoders import CAUSAL, DecoderHeads, DecoderKeys, common_keys, equal_heads, foreign
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Positive, Rate, activation, activation_name
from core_model.config import (
    FeedForwardSpec,
    LayerSpec,
    LearnedPositions,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import ConfigError

_ARCHITECTURES = {
    "GPT2Model": None,
    "GPT2LMHeadModel": "language_model",
    "GPT2DoubleHeadsModel": "language_model",
    "GPT2ForSequenceClassification": "sequence_classes",
    "GPT2ForTokenClassification": "token_classes",
    "GPT2ForQuestionAnswering": "answer_span",
}
_HEADS = DecoderHeads(table="wte.weight")


@dataclass(frozen=True, kw_only=True)
class Gpt2Keys(DecoderKeys):
    """The keys of config.json that decide what is computed."""

    n_positions: Count
    n_embd: Count
    n_layer: Count
    n_head: Count
    n_inner: Count | None = None
    activation_function: str = "gelu_new"
    layer_norm_epsilon: Positive = 1e-5
    embd_pdrop: Rate = 0.1
    attn_pdrop: Rate = 0.1
    resid_pdrop: Rate = 0.1
    scale_attn_weights: bool = True
    scale_attn_by_inverse_layer_idx: bool = False
    add_cross_attention: bool = False


def _read(keys: Gpt2Keys, weights: Weights) -> ModelConfig:
    if keys.add_cross_attention:
        raise ConfigError("add_cross_attention is true in config.json: a GPT-2 that reads an encoder is not supported")
    head_size = equal_heads(keys, "n_embd", "n_head")
    norm = NormSpec(eps=keys.layer_norm_epsilon)
    residual = ResidualSpec(before=norm, dropout=keys.resid_pdrop)
    scale = head_size**-0.5 if keys.scale_attn_weights else 1.0
    layers = tuple(
        LayerSpec(
            attention=multi_head(
                keys.n_embd,
                keys.n_head,
                mask=CAUSAL,
                scale=scale / (i + 1) if keys.scale_attn_by_inverse_layer_idx else scale,
                dropout=keys.attn_pdrop,
            ),
            attention_residual=residual,
            feed_forward=FeedForwardSpec(
                d_hidden=keys.n_inner or 4 * keys.n_embd,
                activation=activation("activation_function", keys.activation_function),
            ),
            feed_forward_residual=residual,
        )
        for i in range(keys.n_layer)
    )
    decoder = StackConfig(
        d_model=keys.n_embd,
        embedding=TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.n_embd, dropout=keys.embd_pdrop),
        position=LearnedPositions(max_length=keys.n_positions),
        layers=layers,
        final_norm=norm,
    )
    return ModelConfig(decoder=decoder, head=_HEADS.read(FAMILY, keys, weights), special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    layer, position = stack.layers[0], stack.position
    plain_scale = layer.attention.head_size**-0.5
    keys = Gpt2Keys(
        **common_keys(config),
        n_positions=position.max_length if isinstance(position, LearnedPositions) else 1,
        n_embd=stack.d_model,
        n_layer=stack.n_layers,
        n_head=layer.attention.n_heads,
        n_inner=layer.feed_forward.d_hidden,
        activation_function=activation_name(layer.feed_forward.activation),
        layer_norm_epsilon=stack.final_norm.eps if stack.final_norm else 1e-5,
        embd_pdrop=stack.tokens.dropout,
        attn_pdrop=layer.attention.dropout,
        resid_pdrop=layer.attention_residual.dropout,
        scale_attn_weights=layer.attention.scale == plain_scale,
        scale_attn_by_inverse_layer_idx=stack.layers[-1].attention.scale != layer.attention.scale,
    )
    return foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    layer = "decoder.layers.{i}"
    return (
        *_HEADS.rows(config.head),
        row("wpe.weight", "decoder.position.weight"),
        row("h.{i}.ln_1.*", f"{layer}.attention_residual.before.*"),
        row(
            "h.{i}.attn.c_attn.*",
            *(f"{layer}.attention.{part}.*" for part in ("query", "key", "value")),
            conversion=TRANSPOSED,
        ),
        row("h.{i}.attn.c_proj.*", f"{layer}.attention.output.*", conversion=TRANSPOSED),
        row("h.{i}.ln_2.*", f"{layer}.feed_forward_residual.before.*"),
        row("h.{i}.mlp.c_fc.*", f"{layer}.feed_forward.input.*", conversion=TRANSPOSED),
        row("h.{i}.mlp.c_proj.*", f"{layer}.feed_forward.output.*", conversion=TRANSPOSED),
        row("ln_f.*", "decoder.final_norm.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size("wte.weight", 0),
        "n_embd": weights.size("wte.weight", 1),
        "n_positions": weights.size("wpe.weight", 0),
        "n_layer": weights.n_layers("h.{i}.ln_1.weight") or None,
        "n_inner": weights.size("h.0.mlp.c_fc.weight", 1),
    }


FAMILY = Family(
    key="gpt2",
    label="GPT-2",
    model_types=("gpt2",),
    architectures=_ARCHITECTURES,
    keys=Gpt2Keys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "n_layer",
        "n_heads": "n_head",
        "d_model": "n_embd",
        "d_hidden": "n_inner",
        "vocab_size": "vocab_size",
        "max_length": "n_positions",
        "activation": "activation_function",
        "eps": "layer_norm_epsilon",
    },
    names=NameTable(
        rows=_rows,
        prefixes=("transformer.",),
        roots=(*_HEADS.roots, "multiple_choice_head."),
        buffers=(r"h\.\d+\.attn\.(masked_)?bias",),
        unused=(r"multiple_choice_head\..*",),
    ),
    aliases={
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "max_position_embeddings": "n_positions",
    },
    markers=(r"(transformer\.)?wpe\.weight", r"(transformer\.)?h\.0\.attn\.c_attn\.weight"),
)
