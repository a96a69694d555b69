"""What the families of encoders have in common: keys of config.json and layers after BERT's plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.family import Family, Foreign, Row, Weights, row
from core_model.checkpoint.families.fields import (
    Count,
    CountOrNone,
    Positive,
    Rate,
    SpecialKeys,
    TokenId,
    activation,
    activation_name,
    class_names,
    equal_heads,
    special_keys,
)
from core_model.config import (
    FeedForwardSpec,
    LayerSpec,
    LearnedPositions,
    ModelConfig,
    NormSpec,
    RelativePositions,
    ResidualSpec,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import ConfigError

PLACES = {
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "d_model": "hidden_size",
    "d_hidden": "intermediate_size",
    "vocab_size": "vocab_size",
    "max_length": "max_position_embeddings",
    "n_types": "type_vocab_size",
    "activation": "hidden_act",
    "eps": "layer_norm_eps",
}
"""The keys of the facts people ask about, in BERT's dialect; see `Family.places`."""
BUFFERS = (r"embeddings\.position_ids", r"embeddings\.token_type_ids")
OLD_SPELLINGS = ((r"\.gamma$", ".weight"), (r"\.beta$", ".bias"))
TABLE = "embeddings.word_embeddings.weight"

_CLASSES = {
    "masked_language_model": "ForMaskedLM",
    "sequence_classes": "ForSequenceClassification",
    "token_classes": "ForTokenClassification",
    "answer_span": "ForQuestionAnswering",
}


@dataclass(frozen=True, kw_only=True)
class EncoderKeys(SpecialKeys):
    """The keys of config.json that mean the same in every family that speaks BERT's dialect."""

    vocab_size: Count
    hidden_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    intermediate_size: Count
    max_position_embeddings: Count
    type_vocab_size: CountOrNone = 2
    hidden_act: str = "gelu"
    layer_norm_eps: Positive = 1e-12
    hidden_dropout_prob: Rate = 0.1
    attention_probs_dropout_prob: Rate = 0.1
    is_decoder: bool = False
    tie_word_embeddings: bool | None = None
    id2label: dict[str, str] | None = None
    pad_token_id: TokenId = 0

    @property
    def norm(self) -> NormSpec:
        """Every norm of the model."""
        return NormSpec(eps=self.layer_norm_eps)


def architectures(name: str) -> dict[str, str | None]:
    """transformers' classes of a family: the bare model and one for each task; of multiple choice no head is read."""
    tasks = {f"{name}{ending}": task for task, ending in _CLASSES.items()}
    return {f"{name}Model": None, **tasks, f"{name}ForMultipleChoice": None}


def require_encoder(keys: EncoderKeys) -> int:
    """The size of a head; ConfigError for a decoder made of an encoder's parts, and for heads of unequal size."""
    if keys.is_decoder:
        raise ConfigError("is_decoder is true in config.json: an encoder used as a decoder is not supported")
    return equal_heads(keys, "hidden_size", "num_attention_heads")


def post_norm_layer(keys: EncoderKeys, position: RelativePositions | None = None) -> LayerSpec:
    """BERT's layer: norms after the sums."""
    residual = ResidualSpec(total=keys.norm, dropout=keys.hidden_dropout_prob)
    return LayerSpec(
        attention=multi_head(
            keys.hidden_size,
            keys.num_attention_heads,
            position=position,
            dropout=keys.attention_probs_dropout_prob,
        ),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(
            d_hidden=keys.intermediate_size, activation=activation("hidden_act", keys.hidden_act)
        ),
        feed_forward_residual=residual,
    )


def embedding(keys: EncoderKeys, d_embedding: int | None = None) -> TokenEmbedding:
    """BERT's embedding: tokens, types and positions, normed; of another width than the model's where one is given."""
    return TokenEmbedding(
        vocab_size=keys.vocab_size,
        d_embedding=d_embedding or keys.hidden_size,
        n_types=keys.type_vocab_size,
        norm=keys.norm,
        dropout=keys.hidden_dropout_prob,
    )


def typed_embedding(keys: EncoderKeys, d_embedding: int | None = None) -> TokenEmbedding:
    """The same where every token has a type; ConfigError where there is none."""
    if not keys.type_vocab_size:
        raise ConfigError("type_vocab_size is 0 in config.json: every token has a type here, so 1 or more are expected")
    return embedding(keys, d_embedding)


def positions_after_padding(n_rows: int, padding: TokenId) -> LearnedPositions:
    """fairseq's learned positions: the first token stands in the row after that of the padding token's id."""
    offset = (padding if isinstance(padding, int) else 1) + 1
    if n_rows <= offset:
        raise ConfigError(f"max_position_embeddings is {n_rows} in config.json: positions begin in row {offset}")
    return LearnedPositions(max_length=n_rows - offset, offset=offset)


def common_keys(config: ModelConfig) -> dict[str, Any]:
    """The `EncoderKeys` of a config, by name."""
    stack, head = config.output_stack, config.head
    layer, position = stack.layers[0], stack.position
    norm = layer.attention_residual.total
    is_masked = head is not None and head.task == "masked_language_model"
    return {
        "vocab_size": stack.tokens.vocab_size,
        "hidden_size": stack.d_model,
        "num_hidden_layers": stack.n_layers,
        "num_attention_heads": layer.attention.n_heads,
        "intermediate_size": layer.feed_forward.d_hidden,
        "max_position_embeddings": position.max_length + position.offset
        if isinstance(position, LearnedPositions)
        else 512,
        "type_vocab_size": stack.tokens.n_types,
        "hidden_act": activation_name(layer.feed_forward.activation),
        "layer_norm_eps": norm.eps if norm else 1e-12,
        "hidden_dropout_prob": stack.tokens.dropout,
        "attention_probs_dropout_prob": layer.attention.dropout,
        "tie_word_embeddings": head.tied if head is not None and is_masked else None,
        "id2label": class_names(head),
        **special_keys(config.special),
    }


def foreign(family: Family, keys: object, config: ModelConfig) -> Foreign:
    """The keys with the class of transformers that has the config's head."""
    return Foreign(keys=keys, architecture=family.architecture_for(config.head.task if config.head else None))


def embedding_rows() -> tuple[Row, ...]:
    """BERT's names of an embedding, without its token table."""
    return (
        row("embeddings.position_embeddings.weight", "encoder.position.weight"),
        row("embeddings.token_type_embeddings.weight", "encoder.embedding.token_type.weight"),
        row("embeddings.LayerNorm.*", "encoder.embedding.norm.*"),
    )


def attention_rows() -> tuple[Row, ...]:
    """BERT's names of a layer's attention and its norm."""
    theirs, ours = "encoder.layer.{i}.attention", "encoder.layers.{i}"
    return (
        *(row(f"{theirs}.self.{part}.*", f"{ours}.attention.{part}.*") for part in ("query", "key", "value")),
        row(f"{theirs}.output.dense.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.output.LayerNorm.*", f"{ours}.attention_residual.total.*"),
    )


def feed_forward_rows() -> tuple[Row, ...]:
    """BERT's names of a layer's feed-forward and its norm."""
    theirs, ours = "encoder.layer.{i}", "encoder.layers.{i}"
    return (
        row(f"{theirs}.intermediate.dense.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.output.dense.*", f"{ours}.feed_forward.output.*"),
        row(f"{theirs}.output.LayerNorm.*", f"{ours}.feed_forward_residual.total.*"),
    )


def sizes(weights: Weights) -> Mapping[str, object]:
    """What the shapes of a file with BERT's names tell."""
    return {
        "vocab_size": weights.size(TABLE, 0),
        "hidden_size": weights.size("encoder.layer.0.intermediate.dense.weight", 1),
        "max_position_embeddings": weights.size("embeddings.position_embeddings.weight", 0),
        "type_vocab_size": weights.size("embeddings.token_type_embeddings.weight", 0),
        "num_hidden_layers": weights.n_layers("encoder.layer.{i}.intermediate.dense.weight") or None,
        "intermediate_size": weights.size("encoder.layer.0.intermediate.dense.weight", 0),
    }
