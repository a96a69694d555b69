"""What the families of decoders have in common: keys of config.json, output heads, fused projections."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.conversion import Joined
from core_model.checkpoint.families.family import QUERY_KEY_VALUE, Family, Foreign, Row, Weights, layer_rows, row
from core_model.checkpoint.families.fields import TextKeys, classes
from core_model.config import HeadSpec, HeadTransform, ModelConfig, StackConfig

_CLASSES = {
    "sequence_classes": "ForSequenceClassification",
    "token_classes": "ForTokenClassification",
    "answer_span": "ForQuestionAnswering",
}


@dataclass(frozen=True, kw_only=True)
class DecoderKeys(TextKeys):
    """The keys of config.json that mean the same in every family of decoders."""

    @property
    def logits(self) -> Mapping[str, Any]:
        """What is done to the logits of a language model: fields of its head."""
        return {}

    @property
    def head_transform(self) -> HeadTransform | None:
        """What comes before the output map of every head."""
        return None


@dataclass(frozen=True, kw_only=True)
class DecoderHeads:
    """The output heads of a family: the token table they may be tied to, and what their linear maps are called."""

    table: str
    language_model: str = "lm_head"
    token_classes: str = "classifier"
    bias: bool = False

    @property
    def _classifiers(self) -> dict[str, str]:
        """The linear map of every head but the language model's, by task."""
        return {"sequence_classes": "score", "token_classes": self.token_classes, "answer_span": "qa_outputs"}

    @property
    def roots(self) -> tuple[str, ...]:
        """How the names of all heads begin."""
        return tuple(f"{name}." for name in (self.language_model, *self._classifiers.values()))

    def read(self, family: Family, keys: DecoderKeys, weights: Weights) -> HeadSpec | None:
        """The head a checkpoint has; None for hidden states only."""
        language_model = f"{self.language_model}.weight"
        evidence = {task: f"{name}.weight" for task, name in self._classifiers.items()}
        default = "language_model" if family.tied_by_default else None
        task = weights.task(family, {"language_model": language_model, **evidence}, default)
        if task is None:
            return None
        settings: dict[str, Any] = {"task": task, "transform": keys.head_transform}
        if task == "language_model":
            tied = weights.ties(
                language_model, self.table, stated=keys.tie_word_embeddings, default=family.tied_by_default
            )
            return HeadSpec(n_outputs=keys.vocab_size, tied=tied, bias=self.bias, **settings, **keys.logits)
        if task == "answer_span":
            return HeadSpec(n_outputs=2, bias=True, **settings)
        n_labels, labels = classes(keys.id2label, weights.size(evidence[task], 0))
        if task == "token_classes":
            return HeadSpec(n_outputs=n_labels, labels=labels, bias=True, **settings)
        return HeadSpec(n_outputs=n_labels, labels=labels, pooling="last", **settings)

    def rows(self, head: HeadSpec | None) -> tuple[Row, Row]:
        """The lines of a name table for the token table and for the head."""
        name = self._classifiers.get(head.task, self.language_model) if head else self.language_model
        copies = (f"{self.language_model}.weight",) if head and head.tied else ()
        return (
            row(self.table, "decoder.embedding.token.weight", also=copies),
            row(f"{name}.*", "head.output.*"),
        )


def architectures(name: str, *tasks: str) -> Mapping[str, str | None]:
    """transformers' classes of a family: the bare model, the language model, and one for each task more."""
    return {
        f"{name}Model": None,
        f"{name}ForCausalLM": "language_model",
        **{f"{name}{_CLASSES[task]}": task for task in tasks},
    }


def fused_by_head(layer: str, name: str) -> Callable[[ModelConfig], tuple[Row, ...]]:
    """The line for a fused projection in which every key head has its queries, its keys and its values in turn."""

    def rows(config: ModelConfig) -> tuple[Row, ...]:
        n_groups = config.output_stack.layers[0].attention.n_key_heads
        return layer_rows(layer, {name: QUERY_KEY_VALUE}, Joined(n_groups=n_groups))

    return rows


def decoder_family(
    heads: DecoderHeads,
    read: Callable[[Any], StackConfig],
    write: Callable[[ModelConfig], DecoderKeys],
    *,
    finish: Callable[[ModelConfig, Any], ModelConfig] = lambda model, keys: model,
    **others: Any,
) -> Family:
    """The family whose keys `read` makes a decoder of, and `write` the inverse; `others` are the fields of Family.

    `finish` has the last word on a model.
    """

    def read_model(keys: DecoderKeys, weights: Weights) -> ModelConfig:
        head = heads.read(family, keys, weights)
        return finish(ModelConfig(decoder=read(keys), head=head, special=keys.special), keys)

    def write_model(config: ModelConfig) -> Foreign:
        task = config.head.task if config.head else None
        return Foreign(keys=write(config), architecture=family.architecture_for(task))

    family = Family(read=read_model, write=write_model, **{"model_types": (others["key"],), **others})
    return family
