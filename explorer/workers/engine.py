"""The one who holds checkpoints, models and traces, and answers queries from them.

Everything here runs on a lane's thread, and torch is imported there by what is called, never when this file is.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from core_model.cancel import CancelToken, Progress
from explorer.state.app_state import ModelInput, OpenedModel, Source, Tokens
from explorer.state.queries import Query, R, TraceQuery
from explorer.workers.answers import ANSWERS
from explorer.workers.inputs import inputs_of, reads_of
from explorer.workers.lru import Lru

if TYPE_CHECKING:
    from core_model.checkpoint import Checkpoint
    from core_model.nn.transformer import Transformer
    from core_model.trace import Inputs, Trace

_GIB = 1 << 30
_OPEN_AT_ONCE = 4
"""Checkpoints whose files are held open. One that is closed while an old question still reads it fails that question,
which nobody waits for."""


class Engine:
    """Answers any query of explorer.state.queries; `answers.py` says how for each kind.

    Within one lane answers come one after another; the caches may be used by two lanes at a time.
    """

    def __init__(self) -> None:
        self._opening = threading.Lock()
        self._checkpoints: Lru[Source, Checkpoint] = Lru(_OPEN_AT_ONCE, lambda checkpoint: checkpoint.close())
        self._models: Lru[Source, Transformer] = Lru(4 * _GIB)
        self._expressible: Lru[Source, tuple[tuple[str, str], ...]] = Lru(_OPEN_AT_ONCE)
        self._traces: Lru[TraceQuery, Trace] = Lru(_GIB)
        self._inputs: Lru[tuple[Source, ModelInput], Inputs] = Lru(4)

    def answer(self, query: Query[R], cancel: CancelToken, progress: Progress) -> R:
        """The answer to a query: frozen records of numpy and text.

        Raises CoreError for what the person can act on, Cancelled when the token was set.
        """
        return ANSWERS[type(query)](self, query, cancel, progress)

    def checkpoint(self, source: Source) -> Checkpoint:
        """The opened checkpoint, from the cache when it was opened before."""
        with self._opening:
            held = self._checkpoints.get(source)
            if held is None:
                from core_model.checkpoint import open_checkpoint

                held = open_checkpoint(source.path, assume=dict(source.assume) or None)
                self._checkpoints.put(source, held, 1)
            return held

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
        held = self._expressible.get(source)
        if held is None:
            from core_model.checkpoint.export import expressing_families

            checkpoint = self.checkpoint(source)
            can = checkpoint.config is not None and checkpoint.info.refusal is None
            families = expressing_families(checkpoint.config) if can and checkpoint.config else ()
            held = tuple((family.key, family.label) for family in families)
            self._expressible.put(source, held, 1)
        return held

    def model(self, source: Source, cancel: CancelToken, progress: Progress) -> Transformer:
        """The loaded model in eval mode. Raises CheckpointError when any weight is missing or mis-shaped."""
        held = self._models.get(source)
        if held is None:
            held = self.checkpoint(source).load_model(cancel=cancel, progress=progress)
            size = sum(parameter.nbytes for parameter in held.parameters())
            self._models.put(source, held, size)
        return held

    def inputs(self, source: Source, given: ModelInput) -> Inputs:
        """What the model reads; see `inputs_of`."""
        held = self._inputs.get((source, given))
        if held is None:
            held = inputs_of(self.checkpoint(source), given)
            self._inputs.put((source, given), held, 1)
        return held

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
        held = self._traces.get(query)
        if held is None:
            from core_model.trace import run_trace

            model, inputs = self.model(query.source, cancel, progress), self.inputs(query.source, query.inputs)
            held = run_trace(model, inputs, cancel=cancel, progress=progress)
            self._traces.put(query, held, held.n_bytes)
        return held

    def close(self) -> None:
        """Let go of everything that is held."""
        for cache in (self._traces, self._models, self._inputs, self._checkpoints):
            cache.clear()
