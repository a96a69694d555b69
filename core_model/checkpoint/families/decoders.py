"""What the families of decoders have in common: keys of config.json, equal heads, output heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.family import Family, Foreign, Row, Weights, row
from core_model.checkpoint.families.fields import Count, TokenId, class_names, classes, special_tokens
from core_model.config import HeadSpec, HeadTransform, MaskSpec, ModelConfig, SpecialTokens
from core_model.errors import ConfigError

CAUSAL = MaskSpec(causal=True)

_CLASSES = {
    "sequence_classes": "ForSequenceClassification",
    "token_classes": "ForTokenClassification",
    "answer_span": "ForQuestionAnswering",
}


@dataclass(frozen=True, kw_only=True)
class DecoderKeys:
    """The keys of config.json that mean the same in every family of decoders."""

    vocab_size: Count
    tie_word_embeddings: bool | None = None
    id2label: dict[str, str] | None = None
    bos_token_id: TokenId = None
    eos_token_id: TokenId = None
    pad_token_id: TokenId = None

    @property
    def special(self) -> SpecialTokens:
        """The ids with a role."""
        return special_tokens(begin=self.bos_token_id, end=self.eos_token_id, padding=self.pad_token_id)


def common_keys(config: ModelConfig) -> dict[str, Any]:
    """The `DecoderKeys` of a config, by name."""
    return {
        "vocab_size": config.output_stack.tokens.vocab_size,
        "tie_word_embeddings": bool(config.head and config.head.tied),
        "id2label": class_names(config.head),
        "bos_token_id": config.special.begin,
        "eos_token_id": config.special.end,
        "pad_token_id": config.special.padding,
    }


def foreign(family: Family, keys: DecoderKeys, config: ModelConfig) -> Foreign:
    """The keys with the class of transformers that has the config's head."""
    return Foreign(keys=keys, architecture=family.architecture_for(config.head.task if config.head else None))


def architectures(name: str, *tasks: str) -> Mapping[str, str | None]:
    """transformers' classes of a family: the bare model, the language model, and one for each task more."""
    return {
        f"{name}Model": None,
        f"{name}ForCausalLM": "language_model",
        **{f"{name}{_CLASSES[task]}": task for task in tasks},
    }


def equal_heads(keys: object, width: str, heads: str) -> int:
    """The size of a head: `width` shared by `heads`, both names of keys; ConfigError when they do not divide."""
    d_model, n_heads = getattr(keys, width), getattr(keys, heads)
    if d_model % n_heads:
        raise ConfigError(
            f"{heads} is {n_heads} and {width} is {d_model} in config.json: every head must have the same size"
        )
    return d_model // n_heads


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

    def read(
        self, family: Family, keys: DecoderKeys, weights: Weights, *, transform: HeadTransform | None = None
    ) -> HeadSpec | None:
        """The head a checkpoint has, after `transform`; None for hidden states only."""
        language_model = f"{self.language_model}.weight"
        evidence = {task: f"{name}.weight" for task, name in self._classifiers.items()}
        default = "language_model" if family.tied_by_default else None
        task = weights.task(family, {"language_model": language_model, **evidence}, default)
        if task is None:
            return None
        if task == "language_model":
            tied = weights.ties(
                language_model, self.table, stated=keys.tie_word_embeddings, default=family.tied_by_default
            )
            return HeadSpec(
                n_outputs=keys.vocab_size, task="language_model", tied=tied, bias=self.bias, transform=transform
            )
        if task == "answer_span":
            return HeadSpec(n_outputs=2, task="answer_span", bias=True, transform=transform)
        n_labels, labels = classes(keys.id2label, weights.size(evidence[task], 0))
        if task == "token_classes":
            return HeadSpec(n_outputs=n_labels, task="token_classes", bias=True, transform=transform, labels=labels)
        return HeadSpec(n_outputs=n_labels, task="sequence_classes", pooling="last", transform=transform, labels=labels)

    def rows(self, head: HeadSpec | None) -> tuple[Row, Row]:
        """The lines of a name table for the token table and for the head."""
        name = self._classifiers.get(head.task, self.language_model) if head else self.language_model
        copies = (f"{self.language_model}.weight",) if head and head.tied else ()
        return (
            row(self.table, "decoder.embedding.token.weight", also=copies),
            row(f"{name}.*", "head.output.*"),
        )
