"""What a person gives a model - text, a picture, a sound - as the inputs it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core_model.checkpoint.preprocessing import Preprocessing
from core_model.checkpoint.text import READS_AGAIN, as_fed, padded
from core_model.config import AudioEmbedding, ModelConfig, PatchEmbedding, TokenEmbedding
from core_model.errors import InputError, TokenizerError
from core_model.preprocess.sounds import read_sound
from core_model.preprocess.tokens import frame_tokens, patch_tokens
from core_model.results import Reads
from core_model.tokenize import Encoding, Tokenizer
from core_model.tokenize.typed_ids import TypedIds
from core_model.trace.inputs import Inputs


@dataclass(frozen=True, kw_only=True)
class Giver:
    """Makes inputs of one model; `name` is what errors call it."""

    name: str
    config: ModelConfig
    tokenizer: Tokenizer | None
    preprocessing: Preprocessing

    @property
    def reads(self) -> tuple[Reads, ...]:
        """What `inputs` takes."""
        return tuple(self._reads())

    def _reads(self) -> Iterator[Reads]:
        config = self.config
        if self.tokenizer is not None and isinstance(next(iter(config.stacks.values())).embedding, TokenEmbedding):
            yield "text"
            if config.encoder is not None and config.decoder is None:
                yield "pair"
        if self.tokenizer is not None and config.encoder is not None and config.decoder is not None:
            yield "target"
        if self.preprocessing.picture is not None:
            yield "picture"
        if self.preprocessing.sound is not None:
            yield "sound"

    def inputs(
        self, text: str | None, pair: str | None, target: str | None, *, picture: Path | None, sound: Path | None
    ) -> Inputs:
        """See `Checkpoint.encode`."""
        if text is None and picture is None and sound is None:
            raise InputError(f"nothing was given: {self.name} reads {self._wanted}")
        given: dict[str, Any] = {} if text is None else self._of_text(text, pair)
        if picture is not None:
            read = self._of_picture(picture)
            if text is not None:
                read["picture_tokens"], read["notes"] = read.pop("tokens"), (*given["notes"], *read["notes"])
            given |= read
        if sound is not None:
            given |= self._of_sound(sound)
        if self.config.encoder and self.config.decoder:
            told = self._fed(target, given)
            given |= {"decoder_ids": told.ids, "decoder_tokens": told}
        return Inputs(**given)

    @property
    def _wanted(self) -> str:
        return ", ".join(self.reads) or "token ids"

    def _of_text(self, text: str, pair: str | None) -> dict[str, Any]:
        first = next(iter(self.config.stacks.values())).embedding
        if not isinstance(first, TokenEmbedding):
            raise TokenizerError(f"{self.name} reads no text: give it {self._wanted}")
        if self.tokenizer is None:
            raise TokenizerError(f"{self.name} has no usable tokenizer: type token ids instead of text")
        tokens, notes = self.tokenizer.encode(text, pair), ()
        vector, padding = self.config.vectors and self.config.vectors.text, self.config.special.padding
        length = self.config.text.max_length if self.config.text and vector and vector.padded else None
        if length is not None and padding is not None and len(tokens) < length:
            notes = (f"text padded from {len(tokens)} to {length} tokens, as in training",)
            tokens = padded(tokens, self.tokenizer, padding, length)
        types = tokens.type_ids if first.n_types else None
        return {"ids": tokens.ids, "type_ids": types, "tokens": tokens, "notes": notes}

    def _of_picture(self, path: Path) -> dict[str, Any]:
        if self.preprocessing.picture is None:
            raise self._unread("picture")
        from core_model.preprocess.pictures import read_picture

        patches = next(
            stack.embedding for stack in self.config.stacks.values() if isinstance(stack.embedding, PatchEmbedding)
        )
        read = read_picture(path, self.preprocessing.picture, patches.n_channels)
        tokens = patch_tokens(patches, (read.pixels.shape[1], read.pixels.shape[2]))
        return {"pixels": read.pixels, "tokens": tokens, "notes": read.notes}

    def _of_sound(self, path: Path) -> dict[str, Any]:
        settings, encoder = self.preprocessing.sound, self.config.encoder
        if settings is None or encoder is None or not isinstance(encoder.embedding, AudioEmbedding):
            raise self._unread("sound")
        read = read_sound(path, settings)
        stride = encoder.embedding.stride
        tokens = frame_tokens(settings.n_frames // stride, settings.step * stride / settings.rate, read.seconds)
        return {"features": read.features, "tokens": tokens, "notes": read.notes}

    def _unread(self, kind: str) -> InputError:
        if self.preprocessing.problem is not None:
            return InputError(f"{self.name} cannot be given a {kind}: {self.preprocessing.problem}")
        return InputError(f"{self.name} reads no {kind}: give it {self._wanted}")

    def _fed(self, target: str | None, given: dict[str, Any]) -> Encoding:
        """What the decoder is fed; without a tokenizer, its start token alone."""
        special, head = self.config.special, self.config.head
        if self.tokenizer is None:
            if target is not None or special.decoder_start is None or self.config.decoder is None:
                raise TokenizerError(f"{self.name} has no usable tokenizer: type the target as token ids")
            return TypedIds(self.config.decoder.tokens.vocab_size).encode(str(special.decoder_start))
        reads_again = target is None and "ids" in given and head is not None and head.task in READS_AGAIN
        told = given["tokens"] if reads_again else self.tokenizer.encode_target(target or "")
        return as_fed(told, self.tokenizer, special)
