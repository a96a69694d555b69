"""What a person gives, as what a model is run on. Runs on a lane's thread."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from core_model.errors import InputError
from explorer.state.app_state import ModelInput
from explorer.state.given_file import GivenFile

if TYPE_CHECKING:
    from core_model.checkpoint import Checkpoint
    from core_model.results import Reads
    from core_model.trace import Inputs


def reads_of(checkpoint: Checkpoint) -> tuple[Reads, ...]:
    """What it can be given here: what it encodes, and token ids where it has no tokenizer to make them."""
    from core_model.config import TokenEmbedding

    config, reads = checkpoint.config, checkpoint.info.reads
    if config is None or checkpoint.tokenizer is not None or checkpoint.info.refusal is not None:
        return reads
    first = next(iter(config.stacks.values()))
    typed: list[Reads] = ["text"] if isinstance(first.embedding, TokenEmbedding) else []
    if config.encoder and config.decoder and isinstance(config.decoder.embedding, TokenEmbedding):
        typed.append("target")
    return (*typed, *reads)


def inputs_of(checkpoint: Checkpoint, given: ModelInput) -> Inputs:
    """What the model reads; ids typed by hand where there is no tokenizer.

    Raises InputError for a file that is not what it was when it was given, and whatever `Checkpoint.encode` raises.
    """
    for file in given.files:
        _require_unchanged(file)
    reads_ids = checkpoint.tokenizer is None and not {"text", "target"}.isdisjoint(reads_of(checkpoint))
    return (_typed if reads_ids and given.texts else _encoded)(checkpoint, given)


def _require_unchanged(file: GivenFile) -> None:
    if GivenFile.at(file.path) != file:
        raise InputError(f"{file.name} has changed on disk since it was opened: open it again.")


def _encoded(checkpoint: Checkpoint, given: ModelInput) -> Inputs:
    """What the checkpoint makes of it."""
    return checkpoint.encode(
        given.text or None,
        pair=given.pair or None,
        target=given.target or None,
        picture=given.picture and given.picture.path,
        sound=given.sound and given.sound.path,
    )


def _typed(checkpoint: Checkpoint, given: ModelInput) -> Inputs:
    """Ids typed by hand, in the decoder's field too, beside the files that are given.

    Raises TokenizerError naming what is not an id of the model.
    """
    from core_model.tokenize.typed_ids import TypedIds
    from core_model.trace import Inputs

    config = checkpoint.config
    assert config is not None, "what is given to a model that cannot be run is not read"
    typed: dict[str, Any] = {}
    why = checkpoint.no_tokenizer
    if given.text:
        tokens = TypedIds(next(iter(config.stacks.values())).tokens.vocab_size, why).encode(given.text)
        typed |= {"ids": tokens.ids, "tokens": tokens}
    if given.target and config.decoder:
        told = TypedIds(config.decoder.tokens.vocab_size, why).encode(given.target)
        typed |= {"decoder_ids": told.ids, "decoder_tokens": told}
    if not given.files:
        return Inputs(**typed)
    read = _encoded(checkpoint, given.only(("picture", "sound")))
    if given.text:
        typed["picture_tokens"] = read.tokens
    return replace(read, **typed)
