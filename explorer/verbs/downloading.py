"""download: a model from the Hugging Face Hub into its local cache."""

from __future__ import annotations

import argparse

from core_model.checkpoint.hub import download
from explorer.verbs.progress import ProgressLine

_EPILOG = """\
Only safetensors, config and tokenizer files are fetched; how many bytes is said before. A download that was stopped
goes on with the next byte. For a private model log in once with `hf auth login`.
Prints the folder, which every other verb opens. This is the only verb that opens a connection.

examples:
  transformer-explorer download openai-community/gpt2
  transformer-explorer inspect "$(transformer-explorer download openai-community/gpt2)"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Fetch a model from the Hugging Face Hub into its local cache."
    parser.epilog = _EPILOG
    parser.add_argument("repository", metavar="REPOSITORY", help="owner and name, as in openai-community/gpt2")
    parser.add_argument("--revision", default="main", help="branch, tag or commit (default: %(default)s)")


def run(arguments: argparse.Namespace) -> int:
    with ProgressLine("downloading") as line:
        folder = download(
            arguments.repository,
            arguments.revision,
            offered=lambda offer: line.note(f"{offer.repository}: {offer.told}"),
            progress=line.update,
        )
    print(folder)
    return 0
