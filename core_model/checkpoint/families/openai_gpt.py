"""GPT, the first (Radford et al. 2018), as transformers stores it: GPT-2's [in, out] matrices, norms after the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families.conversion import TRANSPOSED
from core_model.checkpoint.families.decoders import CAUSAL, DecoderHeads, DecoderKeys, common_keys, equal_heads, foreign
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Positive, Rate
from core_model.checkpoint.wording import shown
from core_model.config import (
    Activation,
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

_HEADS = DecoderHeads(table="tokens_embed.weight")
_ACTIVATIONS: dict[str, Activation] = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}
"""What `afn` means: here "gelu" is the tanh approximation."""


@dataclass(frozen=True, kw_only=True)
class OpenAiGptKeys(DecoderKeys):
    """The keys of config.json that decide what is computed."""

    n_positions: Count
    n_embd: Count
    n_layer: Count
    n_head: Count
    afn: str = "gelu"
    layer_norm_epsilon: Positive = 1e-5
    embd_pdrop: Rate = 0.1
    attn_pdrop: Rate = 0.1
    resid_pdrop: Rate = 0.1


def _read(keys: OpenAiGptKeys, weights: Weights) -> ModelConfig:
    equal_heads(keys, "n_embd", "n_head")
    if keys.afn not in _ACTIVATIONS:
        raise ConfigError(f"afn is {shown(repr(keys.afn))} in config.json: expected one of {', '.join(_ACTIVATIONS)}")
    residual = ResidualSpec(total=NormSpec(eps=keys.layer_norm_epsilon), dropout=keys.resid_pdrop)
    layer = LayerSpec(
        attention=multi_head(keys.n_embd, keys.n_head, mask=CAUSAL, dropout=keys.attn_pdrop),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(d_hidden=4 * keys.n_embd, activation=_ACTIVATIONS[keys.afn]),
        feed_forward_residual=residual,
    )
    decoder = StackConfig(
        d_model=keys.n_embd,
        embedding=TokenEmbedding(vocab_size=keys.vocab_size, d_embedding=keys.n_embd, dropout=keys.embd_pdrop),
        position=LearnedPositions(max_length=keys.n_positions),
        layers=(layer,) * keys.n_layer,
    )
    return ModelConfig(decoder=decoder, head=_HEADS.read(FAMILY, keys, weights), special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    layer, residual = stack.layers[0], stack.layers[0].attention_residual
    activation = layer.feed_forward.activation
    keys = OpenAiGptKeys(
        **common_keys(config),
        n_positions=stack.position.max_length if isinstance(stack.position, LearnedPositions) else 1,
        n_embd=stack.d_model,
        n_layer=stack.n_layers,
        n_head=layer.attention.n_heads,
        afn=next((name for name, known in _ACTIVATIONS.items() if known == activation), activation),
        layer_norm_epsilon=residual.total.eps if residual.total else 1e-5,
        embd_pdrop=stack.tokens.dropout,
        attn_pdrop=layer.attention.dropout,
        resid_pdrop=residual.dropout,
    )
    return foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    layer = "decoder.layers.{i}"
    return (
        *_HEADS.rows(config.head),
        row("positions_embed.weight", "decoder.position.weight"),
        row(
            "h.{i}.attn.c_attn.*",
            *(f"{layer}.attention.{part}.*" for part in ("query", "key", "value")),
            conversion=TRANSPOSED,
        ),
        row("h.{i}.attn.c_proj.*", f"{layer}.attention.output.*", conversion=TRANSPOSED),
        row("h.{i}.ln_1.*", f"{layer}.attention_residual.total.*"),
        row("h.{i}.mlp.c_fc.*", f"{layer}.feed_forward.input.*", conversion=TRANSPOSED),
        row("h.{i}.mlp.c_proj.*", f"{layer}.feed_forward.output.*", conversion=TRANSPOSED),
        row("h.{i}.ln_2.*", f"{layer}.feed_forward_residual.total.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size("tokens_embed.weight", 0),
        "n_embd": weights.size("tokens_embed.weight", 1),
        "n_positions": weights.size("positions_embed.weight", 0),
        "n_layer": weights.n_layers("h.{i}.ln_1.weight") or None,
    }


FAMILY = Family(
    key="openai_gpt",
    label="OpenAI GPT",
    model_types=("openai-gpt",),
    architectures={
        "OpenAIGPTModel": None,
        "OpenAIGPTLMHeadModel": "language_model",
        "OpenAIGPTDoubleHeadsModel": "language_model",
        "OpenAIGPTForSequenceClassification": "sequence_classes",
    },
    keys=OpenAiGptKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "n_layer",
        "n_heads": "n_head",
        "d_model": "n_embd",
        "vocab_size": "vocab_size",
        "max_length": "n_positions",
        "activation": "afn",
        "eps": "layer_norm_epsilon",
    },
    names=NameTable(
        rows=_rows,
        prefixes=("transformer.",),
        roots=(*_HEADS.roots, "multiple_choice_head."),
        buffers=(r"h\.\d+\.attn\.bias", r"position_ids"),
        unused=(r"multiple_choice_head\..*",),
    ),
    aliases={
        "hidden_size": "n_embd",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
        "max_position_embeddings": "n_positions",
    },
    markers=(r"(transformer\.)?tokens_embed\.weight", r"(transformer\.)?positions_embed\.weight"),
)
