"""The tokenizer of a checkpoint, and what a decoder beside an encoder is fed."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from core_model.config import ModelConfig, SpecialTokens, TokenEmbedding
from core_model.errors import TokenizerError
from core_model.tokenize import Encoding, Tokenizer, load_tokenizer

READS_AGAIN = ("sequence_classes", "answer_span")
"""Tasks of a head whose decoder reads what the encoder read."""


def find_tokenizer(
    folder: Path, model_type: str | None, config: ModelConfig | None
) -> tuple[Tokenizer | None, tuple[str, ...]]:
    """The tokenizer beside a model, and what is to be said about it; none for a model that cannot be run."""
    if config is None:
        return None, ()
    tables = [stack.embedding for stack in config.stacks.values() if isinstance(stack.embedding, TokenEmbedding)]
    if not tables:
        return None, ()
    try:
        tokenizer = load_tokenizer(folder, model_type=model_type, vocab_size=tables[0].vocab_size)
    except TokenizerError as error:
        return None, (f"the tokenizer cannot be used, type token ids instead of text: {error}",)
    if tokenizer is None:
        return None, ("there is no tokenizer beside the weights: type token ids instead of text",)
    return tokenizer, tokenizer.warnings


def as_fed(encoding: Encoding, tokenizer: Tokenizer, special: SpecialTokens) -> Encoding:
    """A target as the decoder is fed it, so that it predicts it token by token: its start token, then all but the end.

    Where the model has no start token, a last one that is not the end goes first: the language of mBART's targets.
    TokenizerError when nothing is left.
    """
    start = special.decoder_start
    if encoding.ids and encoding.special[-1]:
        last = encoding.ids[-1]
        start = last if start is None and last != special.end else start
        encoding = _cut(encoding, slice(None, -1))
    if start is not None:
        encoding = _with_start(encoding, tokenizer, start)
    if not encoding.ids:
        raise TokenizerError("the target is empty: give the text the decoder is to read")
    return encoding


def padded(encoding: Encoding, tokenizer: Tokenizer, padding: int, length: int) -> Encoding:
    """The encoding with padding behind it, up to that length; the model attends to it as to any other token."""
    n = max(0, length - len(encoding))
    return replace(
        encoding,
        ids=(*encoding.ids, *(padding,) * n),
        texts=(*encoding.texts, *(tokenizer.token_text(padding),) * n),
        offsets=(*encoding.offsets, *(None,) * n),
        type_ids=(*encoding.type_ids, *(0,) * n),
        special=(*encoding.special, *(True,) * n),
        sequence=(*encoding.sequence, *(None,) * n),
    )


def _cut(encoding: Encoding, part: slice) -> Encoding:
    return replace(encoding, **{field.name: getattr(encoding, field.name)[part] for field in fields(encoding)})


def _with_start(encoding: Encoding, tokenizer: Tokenizer, start: int) -> Encoding:
    """The encoding with the start token in front, unless it is there already."""
    if encoding.ids[:1] == (start,) and encoding.special[0]:
        return encoding
    return Encoding(
        ids=(start, *encoding.ids),
        texts=(tokenizer.target.token_text(start), *encoding.texts),
        offsets=(None, *encoding.offsets),
        type_ids=(0, *encoding.type_ids),
        special=(True, *encoding.special),
        sequence=(None, *encoding.sequence),
    )
