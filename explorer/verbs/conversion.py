"""convert: a checkpoint written anew, as a folder that the transformers library opens."""

from __future__ import annotations

import argparse
from pathlib import Path

from core_model.checkpoint.convert import convert
from core_model.checkpoint.pickles import convert_pickle, is_pickle
from core_model.errors import CheckpointError
from explorer.verbs.progress import ProgressLine
from explorer.verbs.source import add_path, assumed

_EPILOG = """\
A pickle (.bin, .pt, or a folder of them) is written as safetensors: a process of its own reads the weights alone, and
what else is in it is never run. Anything else is written as the family of --to; without it, as the checkpoint's own
where that can express it, else as the first that can.

examples:
  transformer-explorer convert ./run --out ./run-for-transformers
  transformer-explorer convert ./old/pytorch_model.bin --out ./new
  transformer-explorer convert ./adapter --base ./llama --out ./merged
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Write a checkpoint, or an adapter merged with its base, as a Hugging Face folder."
    parser.epilog = _EPILOG
    add_path(parser)
    parser.add_argument("--to", metavar="FAMILY", help="gpt2, llama, bert, ...: a family of transformers")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="folder to write; new or empty")


def run(arguments: argparse.Namespace) -> int:
    if is_pickle(arguments.path):
        return _rewrite(arguments)
    with ProgressLine("converting") as line:
        family = convert(
            arguments.path, arguments.out, arguments.to, assume=dict(assumed(arguments)), progress=line.update
        )
    print(f"{arguments.out}: {family.label}")
    return 0


def _rewrite(arguments: argparse.Namespace) -> int:
    """A pickle's weights as safetensors."""
    if arguments.to or assumed(arguments):
        raise CheckpointError(
            f"{arguments.path} is a pickle, which is written as safetensors first: leave --to, --base and --heads out, "
            "then convert the new folder",
            path=arguments.path,
        )
    with ProgressLine("converting") as line:
        convert_pickle(arguments.path, arguments.out, progress=line.update)
    print(f"{arguments.out}: safetensors")
    return 0
