"""The command line: `transformer-explorer [VERB] ...`.

Each verb is a file of explorer.verbs, imported when it is asked for, so that --help answers at once. What a person can
act on is one line on stderr and exit status 2; a bug shows its traceback, status 1.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from core_model.errors import CoreError

PROGRAM = "transformer-explorer"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_ROOM = "The output cannot be written: its disk is full; free some space or send it elsewhere."
SUCCESS, BUG, USAGE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141


@dataclass(frozen=True, kw_only=True)
class Verb:
    """One thing the command line can do. Its module has `add_arguments(parser)` and `run(arguments) -> int`."""

    module: str
    summary: str


VERBS = {
    "open": Verb(module="explorer.verbs.window", summary="show a checkpoint in the window"),
    "inspect": Verb(module="explorer.verbs.inspection", summary="say what a checkpoint is"),
    "attention": Verb(module="explorer.verbs.attention", summary="write one head's attention as a figure or numbers"),
    "download": Verb(module="explorer.verbs.downloading", summary="fetch a model from the Hugging Face Hub"),
    "convert": Verb(module="explorer.verbs.conversion", summary="write a checkpoint as a Hugging Face folder"),
    "train": Verb(module="explorer.verbs.training", summary="train a small transformer"),
    "screenshot": Verb(module="explorer.verbs.screenshot", summary="draw the window into a PNG, without a display"),
}


_EPILOG = """
Without a verb the window opens, with the checkpoint at a path that is given alone, else with the bundled sample.
'VERB --help' explains a verb.
Layers and heads are counted from 0; rows are queries, columns are keys.

exit status: 0 done, 1 a fault of this program, 2 something you can mend (one line on stderr says what), 130 Ctrl-C
"""


class UsageError(CoreError):
    """Arguments that do not make a command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    argv = sys.argv[1:] if argv is None else list(argv)
    _replace_closed_streams()
    _accept_any_text()
    try:
        status = _run(argv)
        sys.stdout.flush()
        return status
    except SystemExit as done:  # argparse's way to end --help and --version
        return int(done.code or SUCCESS)
    except CoreError as error:
        _complain(str(error))
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _complain(_NO_ROOM)
        _discard_output()
        return USAGE
    except Exception:
        import traceback

        traceback.print_exc()
        return BUG


def _complain(text: str) -> None:
    """One line on stderr; where nothing takes it, the exit status says it alone."""
    with suppress(OSError):
        print(f"{PROGRAM}: {text}", file=sys.stderr)


def _run(argv: list[str]) -> int:
    argv = _with_verb(argv)
    arguments = make_parser(argv[0] if argv else None).parse_args(argv)
    module = importlib.import_module(VERBS[arguments.verb or "open"].module)
    return module.run(arguments)


def _with_verb(argv: list[str]) -> list[str]:
    """The same; a path alone is opened. UsageError for what is neither verb nor path."""
    if not argv or argv[0].startswith("-") or argv[0] in VERBS:
        return argv
    if os.path.exists(argv[0]):
        return ["open", *argv]
    raise UsageError(f"{argv[0]!r} is neither a verb nor a file or folder; see '{PROGRAM} --help'")


def make_parser(verb: str | None = None) -> argparse.ArgumentParser:
    """The parser of all verbs, with the arguments of one."""
    parser = _Parser(
        prog=PROGRAM,
        usage="%(prog)s [-h] [--version] [VERB ... | PATH]",
        description="Open transformer checkpoints, see what their attention really does, train small ones and watch.",
        epilog=_epilog(),
        formatter_class=_HelpFormatter,
    )
    parser.add_argument("--version", action=_ShowVersion, help="print the version and exit")
    verbs = parser.add_subparsers(dest="verb", prog=PROGRAM, help=argparse.SUPPRESS)
    for name, row in VERBS.items():
        sub = verbs.add_parser(name, formatter_class=_HelpFormatter)
        if name == verb:
            importlib.import_module(row.module).add_arguments(sub)
    return parser


def _epilog() -> str:
    return "\n".join(["verbs:", *(f"  {name:12}{verb.summary}" for name, verb in VERBS.items()), _EPILOG])


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see '{self.prog} --help'")


class _ShowVersion(argparse.Action):
    def __init__(self, **options: object) -> None:
        super().__init__(**(options | {"nargs": 0, "dest": argparse.SUPPRESS}))  # pyright: ignore[reportArgumentType]

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"{PROGRAM} {_version()}")
        parser.exit()


def _version() -> str:
    """The version of the installed package, or of the checkout that this file lies in."""
    from importlib import metadata

    try:
        return metadata.version(PROGRAM)
    except metadata.PackageNotFoundError:
        import tomllib
        from pathlib import Path

        project = Path(__file__).resolve().parents[1] / "pyproject.toml"
        return tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]


def _replace_closed_streams() -> None:
    """Python has None where a stream was closed before it started; the next file opened would take its number."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115


def _discard_output() -> None:
    """Or Python complains when it flushes at exit what nobody takes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _accept_any_text() -> None:
    """Tokens hold any character: those that the terminal's encoding lacks are spelled as escapes, never an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
