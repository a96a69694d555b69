"""The output heads of encoders: where each family keeps them, read and written by one rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from core_model.checkpoint.families.family import Family, Row, Weights, row
from core_model.checkpoint.families.fields import activation, classes
from core_model.config import Activation, HeadSpec, HeadTransform, NormSpec, Pooling

Task: TypeAlias = Literal[
    "masked_language_model", "replaced_tokens", "sequence_classes", "token_classes", "answer_span"
]
_N_OUTPUTS = {"replaced_tokens": 1, "answer_span": 2}
"""Tasks whose number of outputs is always the same."""


@dataclass(frozen=True, kw_only=True)
class HeadForm:
    """Where a family keeps the head of one task: its linear map and, before it, a transform with an activation and a
    norm.

    The activation is that which `activation_key` of config.json names, unless it is always the same one. `biases` are
    the names of the output's bias where it has other names than its weight, the one a tied head uses first.
    """

    output: str
    transform: str | None = None
    norm: str | None = None
    activation: Activation | None = None
    activation_key: str = "hidden_act"
    pooling: Pooling = "each"
    biases: tuple[str, ...] = ()

    def is_stored(self, weights: Weights, *, tied: bool) -> bool:
        """Whether a file has the head; the output map of one that may be tied can be absent."""
        names = [] if self.transform is None else [f"{self.transform}.weight"]
        return all(name in weights for name in (names if tied else [*names, f"{self.output}.weight"]))


BERT_MASKED = HeadForm(
    transform="cls.predictions.transform.dense",
    norm="cls.predictions.transform.LayerNorm",
    output="cls.predictions.decoder",
    biases=("cls.predictions.bias", "cls.predictions.decoder.bias"),
)
FAIRSEQ_MASKED = HeadForm(
    transform="lm_head.dense",
    activation="gelu",
    norm="lm_head.layer_norm",
    output="lm_head.decoder",
    biases=("lm_head.bias", "lm_head.decoder.bias"),
)
FAIRSEQ_SEQUENCE = HeadForm(
    transform="classifier.dense", activation="tanh", output="classifier.out_proj", pooling="first"
)
TOKEN_CLASSES = HeadForm(output="classifier")
ANSWER_SPAN = HeadForm(output="qa_outputs")


@dataclass(frozen=True, kw_only=True)
class EncoderHeads:
    """The heads a family has, by task. A file whose config names no class has the first that it stores all of."""

    table: str
    forms: Mapping[Task, HeadForm]

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
        every = (part for form in self.forms.values() for part in (form.transform, form.norm, form.output))
        return tuple(dict.fromkeys(name for name in every if name is not None))

    def read(
        self, family: Family, keys: Any, weights: Weights, *, d_model: int, norm: NormSpec, d_embedding: int = 0
    ) -> HeadSpec | None:
        """The head a checkpoint has; None for hidden states only. A masked language model's ends as wide as the table.

        `d_embedding` is the width of the table where that is not the model's.
        """
        stored = (task for task, form in self.forms.items() if form.is_stored(weights, tied=_may_be_tied(task)))
        task: Any = weights.task(family, {}, next(stored, None))
        if task is None:
            return None
        form = self.forms[task]
        is_masked = task == "masked_language_model"
        n_outputs, labels = self._outputs(task, keys, weights)
        return HeadSpec(
            n_outputs=n_outputs,
            task=task,
            pooling=form.pooling,
            tied=is_masked
            and weights.ties(
                f"{form.output}.weight", self.table, stated=keys.tie_word_embeddings, default=family.tied_by_default
            ),
            bias=True,
            transform=_transform(form, keys, (d_embedding if is_masked else 0) or d_model, norm),
            labels=labels,
        )

    def _outputs(self, task: Task, keys: Any, weights: Weights) -> tuple[int, tuple[str, ...]]:
        """How many outputs a head has, and what classes they stand for."""
        if task == "masked_language_model":
            return keys.vocab_size, ()
        if task in _N_OUTPUTS:
            return _N_OUTPUTS[task], ()
        if (weights.architecture or "").endswith("ForMultipleChoice"):
            return 1, ()
        return classes(keys.id2label, weights.size(f"{self.forms[task].output}.weight", 0))

    def rows(self, head: HeadSpec | None) -> tuple[Row, ...]:
        """The lines of a name table for the token table and for the head."""
        table = "encoder.embedding.token.weight"
        if head is None:
            return (row(self.table, table),)
        form = self.forms[head.task]  # pyright: ignore[reportArgumentType]
        first, *others = (form.biases if head.tied else form.biases[::-1]) or (f"{form.output}.bias",)
        before = ((form.transform, "head.transform.*"), (form.norm, "head.transform_norm.*"))
        return (
            row(self.table, table, also=(f"{form.output}.weight",) if head.tied else ()),
            *(row(f"{theirs}.*", ours) for theirs, ours in before if theirs is not None),
            row(f"{form.output}.weight", "head.output.weight"),
            row(first, "head.output.bias", also=tuple(others)),
        )


def _may_be_tied(task: Task) -> bool:
    return task == "masked_language_model"


def _transform(form: HeadForm, keys: Any, width: int, norm: NormSpec) -> HeadTransform | None:
    if form.transform is None:
        return None
    return HeadTransform(
        d_output=width,
        activation=form.activation or activation(form.activation_key, getattr(keys, form.activation_key)),
        norm=norm if form.norm else None,
    )
