"""A checkout of a tiny application with one dependency, and wheels of that: set up for real, without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
DEPENDENCY = "tiny-dependency"
APPLICATION = """
import sys
from importlib.metadata import version

def main(arguments):
    print(sys.prefix, version("tiny-dependency"), *arguments)
    return 7
"""


def write_wheel(folder: Path, version: str) -> None:
    name = f"tiny_dependency-{version}"
    files = {
        "tiny_dependency.py": "",
        f"{name}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {DEPENDENCY}\nVersion: {version}\n",
        f"{name}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{name}.dist-info/RECORD"] = "".join(f"{path},,\n" for path in files)
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """A folder with main.py and what it needs, and the surroundings in which it is started."""

    root: Path
    wheels: Path

    @property
    def environment(self) -> Path:
        return self.root / ".venv"

    @property
    def packages(self) -> Path:
        return next(self.environment.glob("lib/python3*/site-packages"))

    def require(self, *lines: str, pin: str = "1.0", tests: tuple[str, ...] = ()) -> None:
        (self.root / "pyproject.toml").write_text(
            f"[project]\ndependencies = {list(lines)}\noptional-dependencies.test = {list(tests)}\n"
        )
        (self.root / "constraints.txt").write_text(f"{DEPENDENCY}=={pin}\n")

    def command(self, *arguments: str, python: str | Path = sys.executable) -> list[str]:
        return [str(python), str(self.root / "main.py"), *arguments]

    def surroundings(self) -> dict[str, str]:
        """The person's own pip configuration, which knows no index but a folder of wheels."""
        return os.environ | {
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            "PIP_EXTRA_INDEX_URL": "",
        }

    def start(self, *arguments: str, python: str | Path = sys.executable) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments, python=python), env=self.surroundings(), capture_output=True, text=True
        )


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for version in ("1.0", "1.5"):
        write_wheel(folder, version)
    return folder


@pytest.fixture(scope="session")
def new_checkout(wheels: Path) -> Callable[[Path], Checkout]:
    def make(root: Path) -> Checkout:
        for name in (
            "main.py",
            "core_model/__init__.py",
            "core_model/errors.py",
            "core_model/wording.py",
            "explorer/__init__.py",
        ):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(PROJECT / name, root / name)
        shutil.copytree(PROJECT / "explorer/bootstrap", root / "explorer/bootstrap")
        (root / "explorer/cli.py").write_text(APPLICATION)
        checkout = Checkout(root=root, wheels=wheels)
        checkout.require(f"{DEPENDENCY}>=1")
        return checkout

    return make


@pytest.fixture
def checkout(new_checkout: Callable[[Path], Checkout], tmp_path: Path) -> Checkout:
    """Fresh: nothing is set up."""
    return new_checkout(tmp_path / "checkout")


@pytest.fixture(scope="session")
def first_start(
    new_checkout: Callable[[Path], Checkout], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Checkout, subprocess.CompletedProcess[str]]:
    """A checkout that was started once, and what that start said. Not to be changed."""
    checkout = new_checkout(tmp_path_factory.mktemp("first") / "checkout")
    return checkout, checkout.start("open", "a file")


@pytest.fixture
def started_checkout(first_start: tuple[Checkout, object], tmp_path: Path) -> Checkout:
    """A checkout whose `.venv` is complete."""
    made, _ = first_start
    shutil.copytree(made.root, tmp_path / "checkout", symlinks=True)
    return Checkout(root=tmp_path / "checkout", wheels=made.wheels)
