"""What a person gives a model - text, a picture, a sound - as the inputs it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core_model.checkpoint.text import READS_AGAIN, as_fed
from core_model.config import AudioEmbedding, ModelConfig, PatchEmbedding, TokenEmbedding
from core_model.errors import InputError, TokenizerError
from core_model.results import Reads
from core_model.tokenize import Encoding, Tokenizer
from core_model.trace.inputs import Inputs


@dataclass(frozen=True, kw_only=True)
class Giver:
    """Makes inputs of one model; `name` is what errors call it."""

    name: str
    config: ModelConfig
    tokenizer: Tokenizer | None

    @property
    def reads(self) -> tuple[Reads, ...]:
        """What `inputs` takes."""
        return tuple(self._reads())

    def _reads(self) -> Iterator[Reads]:
        config = self.config
        kinds = [type(stack.embedding) for stack in config.stacks.values()]
        if self.tokenizer is not None and kinds[0] is TokenEmbedding:
            yield "text"
            if config.encoder is not None and config.decoder is None:
                yield "pair"
        if self.tokenizer is not None and config.encoder and config.decoder:
            yield "target"
        if PatchEmbedding in kinds:
            yield "picture"
        if AudioEmbedding in kinds:
            yield "sound"

    def inputs(
        self, text: str | None, pair: str | None, target: str | None, *, picture: Path | None, sound: Path | None
    ) -> Inputs:
        """See `Checkpoint.encode`."""
        if picture is not None or sound is not None:
            raise InputError(f"{self.name}: pictures and sounds are not read yet; give pixels or features to Inputs")
        if self.tokenizer is None:
            raise TokenizerError(f"{self.name} has no usable tokenizer: type token ids instead of text")
        first = next(iter(self.config.stacks.values())).embedding
        if not isinstance(first, TokenEmbedding):
            raise TokenizerError(f"{self.name} reads no text: give it what it reads, and the target as ids")
        if text is None:
            raise InputError(f"nothing was given: {self.name} reads {', '.join(self.reads)}")
        tokens = self.tokenizer.encode(text, pair)
        decoder_tokens = None
        if self.config.encoder and self.config.decoder:
            reads_again = target is None and self.config.head is not None and self.config.head.task in READS_AGAIN
            decoder_tokens = self._fed(tokens if reads_again else self.tokenizer.encode_target(target or ""))
        return Inputs(
            ids=tokens.ids,
            type_ids=tokens.type_ids if first.n_types else None,
            tokens=tokens,
            decoder_ids=decoder_tokens.ids if decoder_tokens else None,
            decoder_tokens=decoder_tokens,
        )

    def _fed(self, told: Encoding) -> Encoding:
        assert self.tokenizer is not None
        return as_fed(told, self.tokenizer, self.config.special)
