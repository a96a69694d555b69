"""The one who holds checkpoints, models and traces, and answers queries from them.

Everything here runs on a lane's thread, and torch is imported there by what is called, never when this file is.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from core_model.cancel import CancelToken, Progress
from explorer.state.app_state import InputKind, ModelInput, OpenedModel, Source, Tokens
from explorer.state.queries import Query, R, TraceQuery
from explorer.workers.answers import ANSWERS
from explorer.workers.lru import Lru

if TYPE_CHECKING:
    from core_model.checkpoint import Checkpoint
    from core_model.config import ModelConfig
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
            takes_pair=config is not None and config.decoder is None and checkpoint.tokenizer is not None,
            takes_target=config is not None and config.decoder is not None and config.encoder is not None,
            normalizers=", ".join(sorted({spec.normalizer for layers in attentions for spec in layers})),
            reads=_reads(config) if config else "text",
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

    def inputs(self, source: Source, text: ModelInput) -> Inputs:
        """What the model reads; ids typed by hand where there is no tokenizer."""
        held = self._inputs.get((source, text))
        if held is None:
            checkpoint = self.checkpoint(source)
            if checkpoint.tokenizer is None and checkpoint.config is not None:
                held = typed_inputs(checkpoint.config, text)
            else:
                held = checkpoint.encode(text.text, pair=text.pair or None, target=text.target or None)
            self._inputs.put((source, text), held, 1)
        return held

    def tokens(self, source: Source, text: ModelInput) -> Tokens:
        """The tokens of a text in the stacks that read it."""
        inputs = self.inputs(source, text)
        has_encoder = any(site.site.startswith("encoder") for site in self.checkpoint(source).info.sites)
        return Tokens(
            source=source,
            inputs=text,
            encoder=inputs.tokens if has_encoder else None,
            decoder=inputs.decoder_tokens if has_encoder else inputs.tokens,
        )

    def trace(self, query: TraceQuery, cancel: CancelToken, progress: Progress) -> Trace:
        """The forward pass over a text, run once and kept."""
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


def _reads(config: ModelConfig) -> InputKind:
    """What the first stack is given; the second of two towers can be left out."""
    from core_model.config import AudioEmbedding, PatchEmbedding, VectorEmbedding

    kinds: dict[type, InputKind] = {AudioEmbedding: "sound", PatchEmbedding: "pictures", VectorEmbedding: "vectors"}
    return kinds.get(type(next(iter(config.stacks.values())).embedding), "text")


def typed_inputs(config: ModelConfig, text: ModelInput) -> Inputs:
    """Ids typed by hand, in the decoder's field too. Raises TokenizerError naming what is not an id of the model."""
    from core_model.tokenize.typed_ids import TypedIds
    from core_model.trace import Inputs

    stacks = list(config.stacks.values())
    tokens = TypedIds(stacks[0].tokens.vocab_size).encode(text.text)
    target = TypedIds(stacks[-1].tokens.vocab_size).encode(text.target) if len(stacks) > 1 and text.target else None
    return Inputs(ids=tokens.ids, tokens=tokens, decoder_ids=target.ids if target else None, decoder_tokens=target)
