"""The output heads of encoders: where each family keeps them, read and written by one rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from core_model.checkpoint.families.family import Family, Row, Weights, row
from core_model.checkpoint.families.fields import activation, classes
from core_model.checkpoint.families.plan import usual_norm
from core_model.config import Activation, HeadSpec, HeadTransform, Pooling, StackConfig

Task: TypeAlias = Literal[
    "masked_language_model", "replaced_tokens", "sequence_classes", "token_classes", "answer_span"
]
_MASKED = "masked_language_model"
_N_OUTPUTS = {"replaced_tokens": 1, "answer_span": 2}
"""Tasks whose number of outputs is always the same."""

TABLE = "embeddings.word_embeddings.weight"
"""BERT's token table, which a head may be tied to."""


@dataclass(frozen=True, kw_only=True)
class HeadForm:
    """Where a family keeps the head of one task: its linear map and, before it, a transform with an activation and a
    norm.

    The activation is that which `activation_key` of config.json names, unless it is always the same one. `biases` are
    the names of the output's bias where it has other names than its weight, the one that is added first. `labels`
    are its classes where they are always the same.
    """

    output: str
    transform: str | None = None
    norm: str | None = None
    activation: Activation | None = None
    activation_key: str = "hidden_act"
    pooling: Pooling = "each"
    biases: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def is_stored(self, weights: Weights, *, may_be_tied: bool) -> bool:
        """Whether a file has the head; the output map of one that may be tied can be absent."""
        names = [] if self.transform is None else [f"{self.transform}.weight"]
        return all(name in weights for name in (names if may_be_tied else [*names, f"{self.output}.weight"]))


BERT_MASKED = HeadForm(
    transform="cls.predictions.transform.dense",
    norm="cls.predictions.transform.LayerNorm",
    output="cls.predictions.decoder",
    biases=("cls.predictions.decoder.bias", "cls.predictions.bias"),
)
FAIRSEQ_MASKED = HeadForm(
    transform="lm_head.dense",
    activation="gelu",
    norm="lm_head.layer_norm",
    output="lm_head.decoder",
    biases=("lm_head.decoder.bias", "lm_head.bias"),
)
FAIRSEQ_SEQUENCE = HeadForm(
    transform="classifier.dense", activation="tanh", output="classifier.out_proj", pooling="first"
)
TOKEN_CLASSES = HeadForm(output="classifier")
ANSWER_SPAN = HeadForm(output="qa_outputs")
BARE: Mapping[Task, HeadForm] = {"token_classes": TOKEN_CLASSES, "answer_span": ANSWER_SPAN}
"""The heads without a transform, which most families have."""


@dataclass(frozen=True, kw_only=True)
class EncoderHeads:
    """The heads a family has, by task. A file whose config names no class has the first that it stores all of.

    `of_class` are those of classes of transformers whose head is not the one of their task; each has labels of its own.
    """

    forms: Mapping[Task, HeadForm]
    of_class: Mapping[str, HeadForm] = field(default_factory=dict)
    table: str = TABLE

    @property
    def roots(self) -> tuple[str, ...]:
        """How the names of all heads begin."""
        return tuple(dict.fromkeys(f"{name.split('.')[0]}." for name in self._names))

    @property
    def unused(self) -> tuple[str, ...]:
        """Patterns of the names of all heads and of poolers: weights that a model with another head leaves unused."""
        biases = (re.escape(bias) for form in self.forms.values() for bias in form.biases)
        return (*(rf"{re.escape(name)}\..*" for name in ("pooler.dense", "sequence_summary", *self._names)), *biases)

    @property
    def _names(self) -> tuple[str, ...]:
        forms = (*self.forms.values(), *self.of_class.values())
        every = (part for form in forms for part in (form.transform, form.norm, form.output))
        return tuple(dict.fromkeys(name for name in every if name is not None))

    def read(self, family: Family, keys: Any, weights: Weights, encoder: StackConfig) -> HeadSpec | None:
        """The head a checkpoint has; None for hidden states only. That for masked tokens ends as wide as the table."""
        stored = (task for task, form in self.forms.items() if form.is_stored(weights, may_be_tied=task == _MASKED))
        task: Any = weights.task(family, {}, next(stored, None))
        if task is None:
            return None
        form = self.of_class.get(weights.architecture or "", self.forms[task])
        n_outputs, labels = _outputs(task, form, keys, weights)
        return HeadSpec(
            n_outputs=n_outputs,
            task=task,
            pooling=form.pooling,
            tied=task == _MASKED
            and weights.ties(
                f"{form.output}.weight", self.table, stated=keys.tie_word_embeddings, default=family.tied_by_default
            ),
            bias=True,
            transform=_transform(
                form, keys, encoder, encoder.tokens.d_embedding if task == _MASKED else encoder.d_model
            ),
            labels=labels,
        )

    def class_of(self, family: Family, head: HeadSpec | None) -> str:
        """The class of transformers with that head; ConfigError where the family has none."""
        own = (name for name, form in self.of_class.items() if head and _is_labelled(form, head))
        return next(own, None) or family.architecture_for(head.task if head else None)

    def rows(self, head: HeadSpec | None) -> tuple[Row, ...]:
        """The lines of a name table for the token table and for the head."""
        table = "encoder.embedding.token.weight"
        if head is None:
            return (row(self.table, table),)
        own = (form for form in self.of_class.values() if _is_labelled(form, head))
        form = next(own, None) or self.forms[head.task]  # pyright: ignore[reportArgumentType]
        first, *others = form.biases or (f"{form.output}.bias",)
        before = ((form.transform, "head.transform.*"), (form.norm, "head.transform_norm.*"))
        return (
            row(self.table, table, also=(f"{form.output}.weight",) if head.tied else ()),
            *(row(f"{theirs}.*", ours) for theirs, ours in before if theirs is not None),
            row(f"{form.output}.weight", "head.output.weight"),
            row(first, "head.output.bias", also=tuple(others)),
        )


def _is_labelled(form: HeadForm, head: HeadSpec) -> bool:
    return (form.labels, form.pooling) == (head.labels, head.pooling)


def _outputs(task: Task, form: HeadForm, keys: Any, weights: Weights) -> tuple[int, tuple[str, ...]]:
    """How many outputs a head has, and what classes they stand for."""
    if task == _MASKED:
        return keys.vocab_size, ()
    if task in _N_OUTPUTS:
        return _N_OUTPUTS[task], ()
    if form.labels:
        return len(form.labels), form.labels
    if (weights.architecture or "").endswith("ForMultipleChoice"):
        return 1, ()
    return classes(keys.id2label, weights.size(f"{form.output}.weight", 0))


def _transform(form: HeadForm, keys: Any, encoder: StackConfig, width: int) -> HeadTransform | None:
    if form.transform is None:
        return None
    return HeadTransform(
        d_output=width,
        activation=form.activation or activation(form.activation_key, getattr(keys, form.activation_key)),
        norm=usual_norm(encoder) if form.norm else None,
    )
