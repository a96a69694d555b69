"""Which packages a start needs and whether they are there: the part of PEP 508 that our pyproject.toml uses."""

from __future__ import annotations

import hashlib
import operator
import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PYTHON = "{}.{}".format(*sys.version_info)
TEST_PINS = "# What the tests need besides"  # the heading in constraints.txt
COMPARISONS = {">=": operator.ge, "<": operator.lt, "==": operator.eq}


class Requirements(NamedTuple):
    """What a start needs: requirement lines of pyproject.toml, a digest of them and the pins, how many pins apply."""

    lines: tuple[str, ...]
    digest: str
    n_pins: int


def read_requirements(root: Path, *, with_tests: bool) -> Requirements:
    """The dependencies of the application, and those of its tests if asked for."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = project["dependencies"] + (project["optional-dependencies"]["test"] if with_tests else [])
    constraints = (root / "constraints.txt").read_text(encoding="utf-8")
    pins = constraints if with_tests else constraints.partition(TEST_PINS)[0]
    digest = hashlib.sha256("\n".join([constraints, *lines]).encode()).hexdigest()
    return Requirements(tuple(lines), digest, pins.count("=="))


def is_satisfied(lines: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the packages installed on `path` fulfil every requirement. Reads their metadata, imports none of them."""
    for line in lines:
        specification, _, marker = line.partition(";")
        if marker and not is_within(PYTHON, marker.replace("python_version", "").replace('"', "")):
            continue
        name = re.split(r"[<>= ]", specification)[0]
        version = installed_version(name, path)
        if version is None or not is_within(version, specification.removeprefix(name)):
            return False
    return True


def is_within(version: str, bounds: str) -> bool:
    """Whether a version lies within bounds such as '>=6.11.2,<6.12'."""
    pairs = re.findall(r"([<>=]+)\s*([\d.]+)", bounds)
    return all(COMPARISONS[sign](release(version), release(bound)) for sign, bound in pairs)


def release(version: str) -> tuple[int, ...]:
    """The release numbers of a version without trailing zeros: '2.13.0+cpu' is (2, 13)."""
    numbers = [int(number) for number in re.split(r"[^\d.]", version)[0].split(".") if number]
    while numbers[-1:] == [0]:
        numbers.pop()
    return tuple(numbers)


def installed_version(name: str, path: Sequence[str]) -> str | None:
    from importlib.metadata import distributions

    return next((found.version for found in distributions(name=name, path=list(path))), None)
