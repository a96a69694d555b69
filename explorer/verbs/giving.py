"""What a verb gives the model to read."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from core_model.errors import InputError, TokenizerError
from explorer.state.app_state import ModelInput, OpenedModel
from explorer.state.given_file import GivenFile

_KINDS = ("text", "pair", "target", "picture", "sound")


def add_input(group: argparse._ArgumentGroup) -> None:
    """The options that say what the model reads."""
    group.add_argument("--text", default="", help="a text, or token ids without a tokenizer; '-': standard input")
    group.add_argument("--pair", default="", help="second text of a pair (BERT)")
    group.add_argument("--target", default="", help="what the decoder writes (encoder-decoder models)")
    group.add_argument("--picture", type=Path, metavar="FILE", help="a PNG, JPEG or WebP file (ViT, DINOv2, CLIP, ...)")
    group.add_argument("--sound", type=Path, metavar="FILE", help="a WAV file (Whisper)")


def given(arguments: argparse.Namespace) -> ModelInput:
    """What these options give."""
    return ModelInput(
        text=_standard_input() if arguments.text == "-" else arguments.text,
        pair=arguments.pair,
        target=arguments.target,
        picture=arguments.picture and GivenFile.at(arguments.picture),
        sound=arguments.sound and GivenFile.at(arguments.sound),
    )


def require_readable(model: OpenedModel, inputs: ModelInput) -> None:
    """Raise InputError for what the model does not read, and where there is nothing for it."""
    options = " and ".join(f"--{kind}" for kind in model.reads) or "nothing here"
    for kind in _KINDS:
        if getattr(inputs, kind) and kind not in model.reads:
            raise InputError(f"--{kind} was given, but {model.info.name} reads {options}.")
    if not model.can_run_on(inputs):
        raise InputError(f"There is nothing to read: {model.info.name} reads {options}.")


def _standard_input() -> str:
    """All of it. Raises TokenizerError where it is no text."""
    if sys.stdin is None:
        raise TokenizerError("Standard input is closed: give the text itself after --text, or pipe it in.")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise TokenizerError(
            f"Standard input is not UTF-8 text (byte {error.object[error.start]:#04x} at offset {error.start}): "
            "save it as UTF-8."
        ) from error
