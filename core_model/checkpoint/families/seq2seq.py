"""What BART and its relatives share: an encoder and a decoder under fairseq's names.

They differ in where the norms stand and in their positions; see `Anatomy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.conversion import WRAPPED
from core_model.checkpoint.families.fairseq import (
    ALIASES,
    PLACES,
    STACK_SIZES,
    EncoderDecoderKeys,
    read_layer,
    special_and_start_keys,
    stack_keys,
    stack_places,
    stack_rows,
)
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Rate, class_names, classes
from core_model.checkpoint.families.plan import read_plan
from core_model.config import (
    AbsolutePositions,
    HeadSpec,
    HeadTransform,
    LearnedPositions,
    ModelConfig,
    StackConfig,
)
from core_model.errors import ConfigError

_TABLES = {stack: f"{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")}
_SHARED, _HEAD, _LOGITS_BIAS = "shared.weight", "lm_head.weight", "final_logits_bias"


@dataclass(frozen=True, kw_only=True)
class Seq2SeqKeys(EncoderDecoderKeys):
    """The keys of config.json that decide what is computed."""

    decoder_vocab_size: Count | None = None
    max_position_embeddings: Count = 1024
    scale_embedding: bool = False
    dropout: Rate = 0.1
    is_encoder_decoder: bool = True
    id2label: dict[str, str] | None = None

    @property
    def shares_table(self) -> bool | None:
        """Whether both stacks are meant to have one token table; None where the file alone tells."""
        return None


@dataclass(frozen=True, kw_only=True)
class Anatomy:
    """What distinguishes a family.

    Norms stand before the sublayers (and after the last layer) or after the sums, and perhaps after the embeddings.
    `positions` are sines and cosines that the keys describe; without, they are learned. Logits may have a bias of
    their own.
    """

    pre_norm: bool
    embedding_norm: bool = False
    positions: Callable[[Any], AbsolutePositions] | None = None
    logits_bias: bool = True

    @property
    def norm_place(self) -> str:
        """Where in a residual branch the norm stands."""
        return "before" if self.pre_norm else "total"

    def read(self, family: Family, keys: Seq2SeqKeys, weights: Weights) -> ModelConfig:
        """The model these keys describe."""
        if not keys.is_encoder_decoder:
            raise ConfigError(
                f"is_encoder_decoder is false in config.json: half a {family.label}, without its encoder or its "
                "decoder, is not supported"
            )
        shared = keys.shares_table is not False and is_shared(weights)
        decoder_vocab = keys.vocab_size if keys.shares_table else keys.decoder_vocab_size or keys.vocab_size
        return ModelConfig(
            encoder=self._stack(keys, "encoder", keys.vocab_size),
            decoder=self._stack(keys, "decoder", decoder_vocab),
            shared_embedding=shared,
            head=self._head(family, keys, weights, decoder_vocab),
            special=keys.special,
        )

    def _stack(self, keys: Seq2SeqKeys, name: str, vocab_size: int) -> StackConfig:
        plan = read_plan(keys, stack_places(name), vocab_size=vocab_size, embedding_dropout=keys.dropout)
        residual = plan.residual(**{"before": None, self.norm_place: plan.norm})
        layer = read_layer(keys, plan, residual, is_decoder=name == "decoder")
        learned = LearnedPositions(max_length=keys.max_position_embeddings, offset=2)  # fairseq's: from row 2 on
        return plan.stack(
            [layer] * plan.n_layers,
            embedding=plan.embedding(
                scale=keys.d_model**0.5 if keys.scale_embedding else 1.0,
                norm=plan.norm if self.embedding_norm else None,
            ),
            position=self.positions(keys) if self.positions else learned,
            final_norm=plan.norm if self.pre_norm else None,
        )

    def _head(self, family: Family, keys: Seq2SeqKeys, weights: Weights, vocab_size: int) -> HeadSpec | None:
        evidence = {"sequence_classes": "classification_head.dense.weight", "answer_span": "qa_outputs.weight"}
        has_logits = _LOGITS_BIAS in weights or _HEAD in weights
        task = weights.task(family, evidence, "language_model" if has_logits else None)
        if task != "language_model":
            return read_head(task, keys, weights)
        tied = ties_head(weights, keys.tie_word_embeddings, has_shared=keys.shares_table is not False)
        bias = self.logits_bias and _LOGITS_BIAS in weights
        return HeadSpec(n_outputs=vocab_size, task="language_model", tied=tied, bias=bias)

    def rows(self, config: ModelConfig, *, has_shared: bool = False) -> tuple[Row, ...]:
        """The lines of the name table."""
        return (
            *table_rows(config, has_shared=has_shared),
            *stack_rows("encoder", self.norm_place),
            *stack_rows("decoder", self.norm_place),
            *head_rows(config.head, has_shared=has_shared),
        )


def is_shared(weights: Weights) -> bool:
    """Whether both stacks read the same token table, each its own where that is stored and else the shared one."""
    encoder, decoder = (
        next((name for name in (own, _SHARED, other) if name in weights), _SHARED)
        for own, other in (_TABLES.values(), tuple(_TABLES.values())[::-1])
    )
    return encoder == decoder or not weights.differ(weights.stored[encoder], weights.stored[decoder])


def table_remarks(keys: Any, weights: Weights, config: ModelConfig) -> tuple[str, ...]:
    """What to say of stacks that read a table each though the keys, as transformers reads them, tie these."""
    says_tied = keys.tie_word_embeddings is not False and keys.shares_table is not False
    if config.decoder is None or config.shared_embedding or not says_tied:
        return ()
    return ("the config ties the token tables of encoder and decoder, but they are stored and differ: each is used",)


def ties_head(weights: Weights, stated: bool | None, *, has_shared: bool = True) -> bool:
    """Whether the output head is the decoder's token table, as the file and tie_word_embeddings have it.

    A head that is not stored is the shared table, where the model has one, whatever the decoder reads.
    """
    table = next((name for name in (_TABLES["decoder"], _SHARED, _TABLES["encoder"]) if name in weights), _SHARED)
    if _HEAD not in weights and has_shared and _SHARED in weights:
        return stated is not False and not weights.differ(weights.stored[_SHARED], weights.stored[table])
    return weights.ties(_HEAD, table, stated=stated, default=True)


def read_head(task: str | None, keys: Any, weights: Weights) -> HeadSpec | None:
    """The head of every task but a language model's; None for hidden states only."""
    if task is None:
        return None
    if task == "answer_span":
        return HeadSpec(n_outputs=2, task="answer_span", bias=True)
    if task == "token_classes":
        n_labels, labels = classes(keys.id2label, weights.size("classifier.weight", 0))
        return HeadSpec(n_outputs=n_labels, task="token_classes", bias=True, labels=labels)
    n_labels, labels = classes(keys.id2label, weights.size("classification_head.out_proj.weight", 0))
    return HeadSpec(
        n_outputs=n_labels,
        task="sequence_classes",
        pooling="last",
        bias=True,
        transform=HeadTransform(d_output=keys.d_model, activation="tanh"),
        labels=labels,
    )


def head_rows(head: HeadSpec | None, *, has_shared: bool = False) -> tuple[Row, ...]:
    """The lines of a name table for a head; only fairseq's language models have a bias.

    `has_shared` says that the file has a shared token table, which an absent head is.
    """
    if head is None:
        return ()
    if head.task == "sequence_classes":
        return (
            row("classification_head.dense.*", "head.transform.*"),
            row("classification_head.out_proj.*", "head.output.*"),
        )
    if head.task == "language_model":
        return (
            row(_HEAD, "head.output.weight", also=(_SHARED,) if has_shared else ()),
            row(_LOGITS_BIAS, "head.output.bias", conversion=WRAPPED),
        )
    return (row({"token_classes": "classifier.*", "answer_span": "qa_outputs.*"}[head.task], "head.output.*"),)


def table_rows(config: ModelConfig, *, has_shared: bool = False) -> tuple[Row, ...]:
    """The lines of a name table for the token tables.

    Where the file `has_shared`, a table of both stacks beside their own perhaps, each stack reads its own before it.
    """
    head = (_HEAD,) if config.head is not None and config.head.tied else ()
    stacks, tables, shared = tuple(config.stacks), tuple(_TABLES.values()), (_SHARED,) if has_shared else ()
    if config.shared_embedding or len(stacks) == 1:
        first, *others = (*tables, _SHARED) if has_shared else (_SHARED, *tables)
        return (row(first, "encoder.embedding.token.weight", also=(*others, *head)),)
    return (
        row(_TABLES["encoder"], "encoder.embedding.token.weight", also=shared),
        row(_TABLES["decoder"], "decoder.embedding.token.weight", also=(*shared, *head)),
    )


def own_tables_first(rows: Callable[..., Sequence[Row]]) -> tuple[str, Callable[[ModelConfig], Sequence[Row]]]:
    """The dialect of files that have a shared token table, of `rows` which take `has_shared`."""
    return r"shared\.weight$", lambda config: rows(config, has_shared=True)


def _sizes(weights: Weights) -> Mapping[str, object]:
    table = next((name for name in (_SHARED, *_TABLES.values()) if name in weights), _SHARED)
    return {**STACK_SIZES(weights), "vocab_size": weights.size(table, 0), "d_model": weights.size(table, 1)}


def _keys(config: ModelConfig) -> dict[str, Any]:
    """The `Seq2SeqKeys` of a config, by name."""
    encoder, decoder, head = config.encoder, config.decoder, config.head
    if encoder is None or decoder is None:
        raise ConfigError("the model has one stack: this family has an encoder and a decoder")
    return {
        **stack_keys(encoder, decoder),
        **special_and_start_keys(config.special),
        "vocab_size": encoder.tokens.vocab_size,
        "max_position_embeddings": encoder.max_length or 1024,
        "scale_embedding": encoder.tokens.scale != 1,
        "tie_word_embeddings": head.tied if head is not None and head.task == "language_model" else None,
        "id2label": class_names(head),
    }


def seq2seq_family(
    anatomy: Anatomy,
    keys: type[Seq2SeqKeys],
    further_keys: Callable[[ModelConfig], Mapping[str, Any]] = lambda config: {},
    **others: Any,
) -> Family:
    """The family of this anatomy; `further_keys` are those of a config that only it has, `others` fields of Family."""

    def write(config: ModelConfig) -> Foreign:
        head = config.head
        has_bias = head is not None and head.task == "language_model" and head.bias
        return Foreign(
            keys=keys(**_keys(config), **further_keys(config)),
            architecture=family.architecture_for(head.task if head else None),
            stored={_LOGITS_BIAS: (1, head.n_outputs)} if head is not None and has_bias else {},
        )

    fixed = (r"(encoder|decoder)\.embed_positions\.weights?",) if anatomy.positions else ()
    settings = {
        "model_types": (others["key"],),
        "sizes": _sizes,
        "places": PLACES,
        "names": NameTable(
            rows=anatomy.rows,
            prefixes=("model.",),
            roots=("lm_head.", _LOGITS_BIAS, "classification_head.", "qa_outputs."),
            dialects=(own_tables_first(anatomy.rows),),
            buffers=(*fixed, r"(encoder|decoder)\.version", r"(encoder|decoder)\.embed_positions\._float_tensor"),
            unused=(r"lm_head\..*", _LOGITS_BIAS, r"classification_head\..*", r"qa_outputs\..*"),
        ),
        "aliases": ALIASES,
        "remarks": table_remarks,
        "layer_counts": ("decoder_layers",),
        **others,
    }
    family = Family(
        keys=keys, read=lambda found, weights: anatomy.read(family, found, weights), write=write, **settings
    )
    return family


def architectures(name: str, conditional: str = "ForConditionalGeneration") -> Mapping[str, str | None]:
    """transformers' classes of a family: the bare model and the one that generates."""
    return {f"{name}Model": None, f"{name}{conditional}": "language_model"}
