"""The one who holds checkpoints, models and traces, and answers queries from them.

Everything here runs on a lane's thread, and torch is imported there by what is called, never when this file is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_model.cancel import CancelToken, Progress
from core_model.errors import TraceError
from core_model.tokenize.encoding import Encoding
from explorer.state.app_state import InputText, Source
from explorer.state.queries import Query, TraceQuery
from explorer.workers.answers import ANSWERS
from explorer.workers.lru import Lru

if TYPE_CHECKING:
    from core_model.checkpoint import Checkpoint
    from core_model.nn.transformer import Transformer
    from core_model.trace import Inputs, Trace

_GIB = 1 << 30


class Engine:
    """Answers any query of explorer.state.queries; `answers.py` says how for each kind.

    Within one lane answers come one after another; the caches may be used by two lanes at a time.
    """

    def __init__(self) -> None:
        self._checkpoints: Lru[Source, Checkpoint] = Lru(4)
        self._models: Lru[Source, Transformer] = Lru(4 * _GIB)
        self._traces: Lru[TraceQuery, Trace] = Lru(_GIB)

    def answer(self, query: Query, cancel: CancelToken, progress: Progress) -> object:
        """The answer to a query: frozen records of numpy and text.

        Raises CoreError for what the person can act on, Cancelled when the token was set.
        """
        return ANSWERS[type(query)](self, query, cancel, progress)

    def checkpoint(self, source: Source) -> Checkpoint:
        """The opened checkpoint, from the cache when it was opened before."""
        held = self._checkpoints.get(source)
        if held is None:
            from core_model.checkpoint import open_checkpoint

            held = open_checkpoint(source.path, assume=dict(source.assume) or None)
            self._checkpoints.put(source, held, 1)
        return held

    def model(self, source: Source) -> Transformer:
        """The loaded model in eval mode. Raises CheckpointError when any weight is missing or mis-shaped."""
        held = self._models.get(source)
        if held is None:
            held = self.checkpoint(source).load_model()
            size = sum(parameter.nbytes for parameter in held.parameters())
            self._models.put(source, held, size)
        return held

    def inputs(self, source: Source, text: InputText) -> Inputs:
        """What the model reads; ids typed by hand where there is no tokenizer."""
        checkpoint = self.checkpoint(source)
        if checkpoint.tokenizer is None:
            return typed_inputs(text)
        return checkpoint.encode(text.text, pair=text.pair or None, target=text.target or None)

    def trace(self, query: TraceQuery, cancel: CancelToken, progress: Progress) -> Trace:
        """The forward pass over a text, run once and kept."""
        held = self._traces.get(query)
        if held is None:
            from core_model.trace import run_trace

            model, inputs = self.model(query.source), self.inputs(query.source, query.inputs)
            held = run_trace(model, inputs, cancel=cancel, progress=progress)
            self._traces.put(query, held, held.n_bytes)
        return held

    def close(self) -> None:
        """Let go of everything that is held."""
        for cache in (self._traces, self._models, self._checkpoints):
            cache.clear()


def typed_inputs(text: InputText) -> Inputs:
    """Ids typed by hand, in the decoder's field too. Raises TraceError naming what is not an id."""
    from core_model.trace import Inputs

    tokens, target = _typed_ids(text.text), _typed_ids(text.target) if text.target else None
    return Inputs(ids=tokens.ids, tokens=tokens, decoder_ids=target.ids if target else None, decoder_tokens=target)


def _typed_ids(text: str) -> Encoding:
    words = text.replace(",", " ").split()
    for word in words:
        if not word.isascii() or not word.isdigit():
            raise TraceError(
                f"{word!r} is not a token id: this model has no tokenizer, so type whole numbers, like 5 17 2"
            )
    n = len(words)
    return Encoding(
        ids=tuple(int(word) for word in words),
        texts=tuple(words),
        offsets=(None,) * n,
        type_ids=(0,) * n,
        special=(False,) * n,
        sequence=(0,) * n,
    )
