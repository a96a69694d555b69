"""The command line as a person meets it: arguments in; status, stdout and stderr out."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from explorer.cli import main
from tests.explorer.models import save_decoder, save_encoder_decoder

ROOT = Path(__file__).resolve().parents[3]
ENTRY = "import sys; from explorer.cli import main; sys.exit(main())"


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


Cli = Callable[..., Done]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run a command in this process."""

    def run(*arguments: object) -> Done:
        status = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return Done(status, out, err)

    return run


@pytest.fixture
def process() -> Callable[..., subprocess.Popen[str]]:
    """Start a command in a process of its own."""

    def start(*arguments: object, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", ENTRY, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        )

    return start


@pytest.fixture(scope="session")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_decoder(tmp_path_factory.mktemp("models") / "decoder")


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_encoder_decoder(tmp_path_factory.mktemp("models") / "translator")
