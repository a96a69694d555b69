"""The checkpoint that a verb is about, and what a person knows of it that its files do not say."""

from __future__ import annotations

import argparse
from pathlib import Path

from explorer.state.source import Assumed


def add_path(parser: argparse.ArgumentParser) -> None:
    """The checkpoint as PATH, with what may be said about it."""
    parser.add_argument("path", type=Path, metavar="PATH", help="folder, .safetensors file, .index.json or run folder")
    add_assumed(parser)


def add_assumed(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """What may be said about a checkpoint."""
    parser.add_argument("--base", type=Path, metavar="FOLDER", help="the model that a LoRA adapter belongs to")
    parser.add_argument("--heads", type=_positive, metavar="N", help="attention heads a layer, where no file says it")


def assumed(arguments: argparse.Namespace) -> Assumed:
    """What was said, as `Source.assume` has it."""
    base: Assumed = (("base", str(arguments.base)),) if arguments.base else ()
    heads: Assumed = (("n_heads", arguments.heads),) if arguments.heads else ()
    return base + heads


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of heads, like 8")
    return int(text)
