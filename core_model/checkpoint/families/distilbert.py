"""DistilBERT (Sanh et al. 2019): BERT without token types, under names of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.encoder_heads import ANSWER_SPAN, TOKEN_CLASSES, EncoderHeads, HeadForm
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Rate, SpecialKeys, TokenId, equal_heads
from core_model.config import LearnedPositions, ModelConfig, StackConfig

_HEADS = EncoderHeads(
    table=encoders.TABLE,
    forms={
        "masked_language_model": HeadForm(
            transform="vocab_transform", norm="vocab_layer_norm", output="vocab_projector", activation_key="activation"
        ),
        "sequence_classes": HeadForm(
            transform="pre_classifier", activation="relu", output="classifier", pooling="first"
        ),
        "token_classes": TOKEN_CLASSES,
        "answer_span": ANSWER_SPAN,
    },
)
_SAME_KEYS = (
    "vocab_size",
    "max_position_embeddings",
    "tie_word_embeddings",
    "id2label",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
)
"""Keys with BERT's own names."""


@dataclass(frozen=True, kw_only=True)
class DistilBertKeys(SpecialKeys):
    """The keys of config.json that decide what is computed."""

    vocab_size: Count
    dim: Count
    n_layers: Count
    n_heads: Count
    hidden_dim: Count
    max_position_embeddings: Count = 512
    activation: str = "gelu"
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.1
    tie_word_embeddings: bool | None = None
    id2label: dict[str, str] | None = None
    pad_token_id: TokenId = 0


def _read(keys: DistilBertKeys, weights: Weights) -> ModelConfig:
    equal_heads(keys, "dim", "n_heads")
    as_bert = encoders.EncoderKeys(
        vocab_size=keys.vocab_size,
        hidden_size=keys.dim,
        num_hidden_layers=keys.n_layers,
        num_attention_heads=keys.n_heads,
        intermediate_size=keys.hidden_dim,
        max_position_embeddings=keys.max_position_embeddings,
        type_vocab_size=0,
        hidden_act=keys.activation,
        hidden_dropout_prob=keys.dropout,
        attention_probs_dropout_prob=keys.attention_dropout,
    )
    encoder = StackConfig(
        d_model=keys.dim,
        embedding=encoders.embedding(as_bert),
        position=LearnedPositions(max_length=keys.max_position_embeddings),
        layers=(encoders.post_norm_layer(as_bert),) * keys.n_layers,
    )
    return ModelConfig(
        encoder=encoder,
        head=_HEADS.read(FAMILY, keys, weights, d_model=keys.dim, norm=as_bert.norm),
        special=keys.special,
    )


def _write(config: ModelConfig) -> Foreign:
    told = encoders.common_keys(config)
    keys = DistilBertKeys(
        dim=told["hidden_size"],
        n_layers=told["num_hidden_layers"],
        n_heads=told["num_attention_heads"],
        hidden_dim=told["intermediate_size"],
        activation=told["hidden_act"],
        dropout=told["hidden_dropout_prob"],
        attention_dropout=told["attention_probs_dropout_prob"],
        **{key: told[key] for key in told if key in _SAME_KEYS},
    )
    return encoders.foreign(FAMILY, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "transformer.layer.{i}", "encoder.layers.{i}"
    return (
        *_HEADS.rows(config.head),
        *encoders.embedding_rows(),
        row(f"{theirs}.attention.q_lin.*", f"{ours}.attention.query.*"),
        row(f"{theirs}.attention.k_lin.*", f"{ours}.attention.key.*"),
        row(f"{theirs}.attention.v_lin.*", f"{ours}.attention.value.*"),
        row(f"{theirs}.attention.out_lin.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.sa_layer_norm.*", f"{ours}.attention_residual.total.*"),
        row(f"{theirs}.ffn.lin1.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.ffn.lin2.*", f"{ours}.feed_forward.output.*"),
        row(f"{theirs}.output_layer_norm.*", f"{ours}.feed_forward_residual.total.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size(encoders.TABLE, 0),
        "dim": weights.size(encoders.TABLE, 1),
        "max_position_embeddings": weights.size("embeddings.position_embeddings.weight", 0),
        "n_layers": weights.n_layers("transformer.layer.{i}.ffn.lin1.weight") or None,
        "hidden_dim": weights.size("transformer.layer.0.ffn.lin1.weight", 0),
    }


FAMILY = Family(
    key="distilbert",
    label="DistilBERT",
    model_types=("distilbert",),
    architectures={
        **encoders.architectures("DistilBert"),
        "DistilBertForMultipleChoice": "sequence_classes",
    },
    keys=DistilBertKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "n_layers",
        "n_heads": "n_heads",
        "d_model": "dim",
        "d_hidden": "hidden_dim",
        "vocab_size": "vocab_size",
        "max_length": "max_position_embeddings",
        "activation": "activation",
    },
    names=NameTable(
        rows=_rows,
        prefixes=("distilbert.",),
        roots=_HEADS.roots,
        spellings=encoders.OLD_SPELLINGS,
        buffers=encoders.BUFFERS,
        unused=_HEADS.unused,
    ),
    aliases={"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"},
    markers=(r"(distilbert\.)?transformer\.layer\.0\.attention\.q_lin\.weight",),
)
