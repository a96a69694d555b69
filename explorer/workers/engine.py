"""The one who holds checkpoints, models and traces, and answers queries from them.

Everything here runs on a lane's thread, and torch is imported there by what is called, never when this file is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from core_model.cancel import CancelToken, Progress
from explorer.state.app_state import ModelInput, OpenedModel, Tokens
from explorer.state.queries import AnyQuery, Query, R, TraceQuery
from explorer.state.source import Source
from explorer.workers.inputs import inputs_of, reads_of
from explorer.workers.lru import Lru

if TYPE_CHECKING:
    from core_model.checkpoint import Checkpoint
    from core_model.nn.transformer import Transformer
    from core_model.trace import Inputs, Trace

_GIB = 1 << 30
_OPEN_AT_ONCE = 4
"""Checkpoints whose files are held open; more only while an answer that may read one of them is under way."""

AnswerFunction: TypeAlias = Callable[["Engine", Any, CancelToken, Progress], Any]


class Engine:
    """Answers any query by the function that `answers` has for its kind.

    Within one lane answers come one after another; the caches may be used by several lanes at a time.
    """

    def __init__(self, answers: Mapping[type[AnyQuery], AnswerFunction]) -> None:
        self._answers = answers
        self._counting = threading.Lock()
        self._n_under_way = 0
        self._to_close: list[Checkpoint] = []
        self._checkpoints: Lru[Source, Checkpoint] = Lru(_OPEN_AT_ONCE, self._to_close.append)
        self._models: Lru[Source, Transformer] = Lru(4 * _GIB)
        self._expressible: Lru[Source, tuple[tuple[str, str], ...]] = Lru(_OPEN_AT_ONCE)
        self._traces: Lru[TraceQuery, Trace] = Lru(_GIB)
        self._inputs: Lru[tuple[Source, ModelInput], Inputs] = Lru(4)

    def answer(self, query: Query[R], cancel: CancelToken, progress: Progress) -> R:
        """The answer to a query: frozen records of numpy and text.

        Raises CoreError for what the person can act on, Cancelled when the token was set.
        """
        with self._under_way():
            return self._answers[type(query)](self, query, cancel, progress)

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        """What the cache drops meanwhile may still be read by an answer of any lane: the last to end closes it."""
        with self._counting:
            self._n_under_way += 1
        try:
            yield
        finally:
            with self._counting:
                self._n_under_way -= 1
                while self._to_close and not self._n_under_way:
                    self._to_close.pop().close()

    def checkpoint(self, source: Source) -> Checkpoint:
        """The opened checkpoint, from the cache when it was opened before."""

        def make() -> Checkpoint:
            from core_model.checkpoint import open_checkpoint

            return open_checkpoint(source.path, assume=dict(source.assume) or None)

        return self._checkpoints.get_or_make(source, make)

    def opened(self, source: Source) -> OpenedModel:
        """What the checkpoint turned out to be, as far as it has been read by now."""
        checkpoint = self.checkpoint(source)
        config = checkpoint.config
        attentions = config.attention_layers().values() if config else ()
        return OpenedModel(
            source=source,
            info=checkpoint.info,
            has_tokenizer=checkpoint.tokenizer is not None,
            reads=reads_of(checkpoint),
            normalizers=", ".join(sorted({spec.normalizer for layers in attentions for spec in layers})),
            families=self._families(source),
        )

    def _families(self, source: Source) -> tuple[tuple[str, str], ...]:
        """Key and label of the families that can express the model; asked once, for it takes a tenth of a second."""

        def make() -> tuple[tuple[str, str], ...]:
            from core_model.checkpoint.export import expressing_families

            checkpoint = self.checkpoint(source)
            can = checkpoint.config is not None and checkpoint.info.refusal is None
            families = expressing_families(checkpoint.config) if can and checkpoint.config else ()
            return tuple((family.key, family.label) for family in families)

        return self._expressible.get_or_make(source, make)

    def model(self, source: Source, cancel: CancelToken, progress: Progress) -> Transformer:
        """The loaded model in eval mode. Raises CheckpointError when any weight is missing or mis-shaped."""
        return self._models.get_or_make(
            source,
            lambda: self.checkpoint(source).load_model(cancel=cancel, progress=progress),
            lambda model: sum(parameter.nbytes for parameter in model.parameters()),
        )

    def inputs(self, source: Source, given: ModelInput) -> Inputs:
        """What the model reads; see `inputs_of`."""
        return self._inputs.get_or_make((source, given), lambda: inputs_of(self.checkpoint(source), given))

    def tokens(self, source: Source, given: ModelInput) -> Tokens:
        """What was given as tokens, patches or frames, in the stacks that read it."""
        from core_model.tokenize.encoding import PROBE

        inputs, checkpoint = self.inputs(source, given), self.checkpoint(source)
        read = {name: inputs.tokens_of(name) for name in checkpoint.config.stacks} if checkpoint.config else {}
        stacks = {name: tokens for name, tokens in read.items() if tokens is not None}
        probes = {site.site: PROBE for site in checkpoint.info.sites if site.site.endswith(".pool")}
        return Tokens(source=source, inputs=given, stacks=stacks | probes, notes=inputs.notes)

    def trace(self, query: TraceQuery, cancel: CancelToken, progress: Progress) -> Trace:
        """The forward pass over an input, run once and kept."""

        def make() -> Trace:
            from core_model.trace import run_trace

            model, inputs = self.model(query.source, cancel, progress), self.inputs(query.source, query.inputs)
            return run_trace(model, inputs, cancel=cancel, progress=progress)

        return self._traces.get_or_make(query, make, lambda trace: trace.n_bytes)

    def close(self) -> None:
        """Let go of everything that is held."""
        with self._under_way():
            for cache in (self._traces, self._models, self._inputs, self._checkpoints):
                cache.clear()
