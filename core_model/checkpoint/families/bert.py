"""BERT (Devlin et al. 2019), as transformers and the first TensorFlow conversions store it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import (
    Count,
    CountOrNone,
    Positive,
    Rate,
    TokenId,
    activation,
    activation_name,
    class_names,
    classes,
    special_tokens,
)
from core_model.checkpoint.wording import shown
from core_model.config import (
    FeedForwardSpec,
    HeadSpec,
    HeadTransform,
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
    "BertModel": None,
    "BertForMaskedLM": "masked_language_model",
    "BertForPreTraining": "masked_language_model",
    "BertForSequenceClassification": "sequence_classes",
    "BertForMultipleChoice": "sequence_classes",
    "BertForNextSentencePrediction": "sequence_classes",
    "BertForTokenClassification": "token_classes",
    "BertForQuestionAnswering": "answer_span",
}
_NEXT_SENTENCE = ("sentence B follows A", "sentence B is random")
_TABLE, _DECODER = "embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"


@dataclass(frozen=True, kw_only=True)
class BertKeys:
    """The keys of config.json that decide what is computed."""

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
    position_embedding_type: str | None = "absolute"
    is_decoder: bool = False
    tie_word_embeddings: bool | None = None
    id2label: dict[str, str] | None = None
    bos_token_id: TokenId = None
    eos_token_id: TokenId = None
    pad_token_id: TokenId = 0


def _read(keys: BertKeys, weights: Weights) -> ModelConfig:
    if keys.is_decoder:
        raise ConfigError("is_decoder is true in config.json: a BERT used as a decoder is not supported")
    if keys.position_embedding_type not in (None, "absolute"):
        raise ConfigError(
            f"position_embedding_type is {shown(repr(keys.position_embedding_type))} in config.json: "
            "only BERT's own 'absolute' positions are supported"
        )
    if keys.hidden_size % keys.num_attention_heads:
        raise ConfigError(
            f"num_attention_heads is {keys.num_attention_heads} and hidden_size is {keys.hidden_size} in config.json: "
            "every head must have the same size"
        )
    norm = NormSpec(eps=keys.layer_norm_eps)
    residual = ResidualSpec(total=norm, dropout=keys.hidden_dropout_prob)
    layer = LayerSpec(
        attention=multi_head(keys.hidden_size, keys.num_attention_heads, dropout=keys.attention_probs_dropout_prob),
        attention_residual=residual,
        feed_forward=FeedForwardSpec(
            d_hidden=keys.intermediate_size, activation=activation("hidden_act", keys.hidden_act)
        ),
        feed_forward_residual=residual,
    )
    encoder = StackConfig(
        d_model=keys.hidden_size,
        embedding=TokenEmbedding(
            vocab_size=keys.vocab_size,
            d_embedding=keys.hidden_size,
            n_types=keys.type_vocab_size,
            norm=norm,
            dropout=keys.hidden_dropout_prob,
        ),
        position=LearnedPositions(max_length=keys.max_position_embeddings),
        layers=(layer,) * keys.num_hidden_layers,
    )
    return ModelConfig(
        encoder=encoder,
        head=_read_head(keys, weights),
        special=special_tokens(begin=keys.bos_token_id, end=keys.eos_token_id, padding=keys.pad_token_id),
    )


def _read_head(keys: BertKeys, weights: Weights) -> HeadSpec | None:
    task = weights.task(FAMILY, _evidence(weights))
    if task is None:
        return None
    if task == "masked_language_model":
        tied = weights.ties(_DECODER, _TABLE, stated=keys.tie_word_embeddings, default=FAMILY.tied_by_default)
        transform = HeadTransform(
            d_output=keys.hidden_size,
            activation=activation("hidden_act", keys.hidden_act),
            norm=NormSpec(eps=keys.layer_norm_eps),
        )
        return HeadSpec(n_outputs=keys.vocab_size, task=task, tied=tied, bias=True, transform=transform)
    if task == "answer_span":
        return HeadSpec(n_outputs=2, task=task, bias=True)
    n_labels, labels = classes(keys.id2label, weights.size("classifier.weight", 0))
    if task == "token_classes":
        return HeadSpec(n_outputs=n_labels, task=task, bias=True, labels=labels)
    if weights.architecture == "BertForNextSentencePrediction":
        n_labels, labels = 2, _NEXT_SENTENCE
    elif weights.architecture == "BertForMultipleChoice":
        n_labels, labels = 1, ()
    pooler = HeadTransform(d_output=keys.hidden_size, activation="tanh")
    return HeadSpec(
        n_outputs=n_labels, task="sequence_classes", pooling="first", bias=True, transform=pooler, labels=labels
    )


def _evidence(weights: Weights) -> Mapping[str, str]:
    """Tensors that tell the head's task; a classifier reads the pooler, where there is one."""
    classifier = "sequence_classes" if "pooler.dense.weight" in weights else "token_classes"
    return {
        "masked_language_model": "cls.predictions.transform.dense.weight",
        classifier: "classifier.weight",
        "answer_span": "qa_outputs.weight",
    }


def _write(config: ModelConfig) -> Foreign:
    stack, head = config.output_stack, config.head
    layer, position, norm = stack.layers[0], stack.position, stack.tokens.norm
    architecture = FAMILY.architecture_for(head.task if head else None)
    if head and head.labels == _NEXT_SENTENCE:
        architecture = "BertForNextSentencePrediction"
    keys = BertKeys(
        vocab_size=stack.tokens.vocab_size,
        hidden_size=stack.d_model,
        num_hidden_layers=stack.n_layers,
        num_attention_heads=layer.attention.n_heads,
        intermediate_size=layer.feed_forward.d_hidden,
        max_position_embeddings=position.max_length if isinstance(position, LearnedPositions) else 1,
        type_vocab_size=stack.tokens.n_types,
        hidden_act=activation_name(layer.feed_forward.activation),
        layer_norm_eps=norm.eps if norm else 1e-12,
        hidden_dropout_prob=stack.tokens.dropout,
        attention_probs_dropout_prob=layer.attention.dropout,
        tie_word_embeddings=head.tied if head and head.task == "masked_language_model" else True,
        id2label=class_names(head),
        bos_token_id=config.special.begin,
        eos_token_id=config.special.end,
        pad_token_id=config.special.padding,
    )
    return Foreign(keys=keys, architecture=architecture)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    tied = config.head is not None and config.head.tied
    theirs, ours = "encoder.layer.{i}", "encoder.layers.{i}"
    return (
        row(_TABLE, "encoder.embedding.token.weight", also=(_DECODER,) if tied else ()),
        row("embeddings.position_embeddings.weight", "encoder.position.weight"),
        row("embeddings.token_type_embeddings.weight", "encoder.embedding.token_type.weight"),
        row("embeddings.LayerNorm.*", "encoder.embedding.norm.*"),
        row(f"{theirs}.attention.self.query.*", f"{ours}.attention.query.*"),
        row(f"{theirs}.attention.self.key.*", f"{ours}.attention.key.*"),
        row(f"{theirs}.attention.self.value.*", f"{ours}.attention.value.*"),
        row(f"{theirs}.attention.output.dense.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.attention.output.LayerNorm.*", f"{ours}.attention_residual.total.*"),
        row(f"{theirs}.intermediate.dense.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.output.dense.*", f"{ours}.feed_forward.output.*"),
        row(f"{theirs}.output.LayerNorm.*", f"{ours}.feed_forward_residual.total.*"),
        *_head_rows(config.head),
    )


def _head_rows(head: HeadSpec | None) -> tuple[Row, ...]:
    if head is None:
        return ()
    if head.task == "masked_language_model":
        biases = ("cls.predictions.bias", "cls.predictions.decoder.bias")
        bias, also = biases if head.tied else biases[::-1]
        return (
            row("cls.predictions.transform.dense.*", "head.transform.*"),
            row("cls.predictions.transform.LayerNorm.*", "head.transform_norm.*"),
            row(_DECODER, "head.output.weight"),
            row(bias, "head.output.bias", also=(also,)),
        )
    root = "qa_outputs" if head.task == "answer_span" else "classifier"
    if head.labels == _NEXT_SENTENCE:
        root = "cls.seq_relationship"
    return row("pooler.dense.*", "head.transform.*"), row(f"{root}.*", "head.output.*")


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "vocab_size": weights.size(_TABLE, 0),
        "hidden_size": weights.size(_TABLE, 1),
        "max_position_embeddings": weights.size("embeddings.position_embeddings.weight", 0),
        "type_vocab_size": weights.size("embeddings.token_type_embeddings.weight", 0),
        "num_hidden_layers": weights.n_layers("encoder.layer.{i}.attention.self.query.weight") or None,
        "intermediate_size": weights.size("encoder.layer.0.intermediate.dense.weight", 0),
    }


FAMILY = Family(
    key="bert",
    label="BERT",
    model_types=("bert",),
    architectures=_ARCHITECTURES,
    keys=BertKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "d_model": "hidden_size",
        "d_hidden": "intermediate_size",
        "vocab_size": "vocab_size",
        "max_length": "max_position_embeddings",
        "n_types": "type_vocab_size",
        "activation": "hidden_act",
        "eps": "layer_norm_eps",
    },
    names=NameTable(
        rows=_rows,
        prefixes=("bert.",),
        roots=("cls.", "classifier.", "qa_outputs."),
        spellings=((r"\.gamma$", ".weight"), (r"\.beta$", ".bias")),
        buffers=(r"embeddings\.position_ids", r"embeddings\.token_type_ids"),
        unused=(r"pooler\.dense\..*", r"cls\.seq_relationship\..*"),
    ),
    markers=(r"bert\.embeddings\.word_embeddings\.weight", r"bert\.encoder\.layer\.0\.attention\.self\.query\.weight"),
)
