from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from explorer.bootstrap.requirements import is_satisfied, is_within, read_requirements

PROJECT = Path(__file__).parents[2]


def install(folder: Path, name: str, version: str) -> None:
    (folder / f"{name}-{version}.dist-info").mkdir()
    (folder / f"{name}-{version}.dist-info/METADATA").write_text(f"Name: {name}\nVersion: {version}\n")


@pytest.mark.parametrize(
    ("version", "bounds", "expected"),
    [
        ("6.11.3", ">=6.11.2,<6.12", True),
        ("6.12.0", ">=6.11.2,<6.12", False),
        ("6.9.9", ">=6.11.2", False),
        ("2.13.0+cu130", "==2.13.0", True),
        ("2.13.1", "==2.13.0", False),
        ("9", ">=9.0", True),
        ("0.10", ">=0.9", True),
        ("2.0rc1", ">=1.9", True),
        ("1.0", "", True),
    ],
)
def test_versions_are_compared_by_their_release_numbers(version, bounds, expected):
    assert is_within(version, bounds) is expected


def test_a_package_that_is_missing_or_too_old_leaves_the_requirements_unsatisfied(tmp_path):
    install(tmp_path, "numpy", "2.4.6")
    assert is_satisfied(["numpy>=2.2"], [str(tmp_path)])
    assert not is_satisfied(["numpy>=2.5"], [str(tmp_path)])
    assert not is_satisfied(["numpy>=2.2", "torch>=2.13"], [str(tmp_path)])


def test_names_are_found_whatever_their_spelling(tmp_path):
    install(tmp_path, "pyside6_essentials", "6.11.3")
    assert is_satisfied(["PySide6_Essentials>=6.11.2"], [str(tmp_path)])
    assert is_satisfied(["PySide6-Essentials>=6.11.2"], [str(tmp_path)])


def test_a_requirement_for_another_python_does_not_count(tmp_path):
    assert is_satisfied(['nowhere>=1; python_version < "3.11"'], [str(tmp_path)])
    assert not is_satisfied(['nowhere>=1; python_version >= "3.11"'], [str(tmp_path)])


def test_a_package_without_metadata_counts_as_missing(tmp_path):
    (tmp_path / "numpy-2.4.6.dist-info").mkdir()
    assert not is_satisfied(["numpy>=2.2"], [str(tmp_path)])


def test_the_tests_need_what_the_application_needs_and_more():
    application = read_requirements(PROJECT, with_tests=False)
    tests = read_requirements(PROJECT, with_tests=True)
    assert set(application.lines) < set(tests.lines)
    assert application.n_pins < tests.n_pins
    assert application.digest != tests.digest


def test_a_changed_pin_changes_the_digest(tmp_path):
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((PROJECT / name).read_bytes())
    before = read_requirements(tmp_path, with_tests=False)
    assert before == read_requirements(PROJECT, with_tests=False)
    pins = (tmp_path / "constraints.txt").read_text().replace("torch==2.13.0", "torch==2.13.1")
    (tmp_path / "constraints.txt").write_text(pins)
    assert read_requirements(tmp_path, with_tests=False).digest != before.digest


def test_every_requirement_is_pinned_within_its_bounds():
    pins = {}
    for line in (PROJECT / "constraints.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            pins[re.sub(r"[-_.]+", "-", name).lower()] = version
    for line in read_requirements(PROJECT, with_tests=True).lines:
        specification = line.partition(";")[0]
        name = re.split(r"[<>= ]", specification)[0]
        assert is_within(pins[re.sub(r"[-_.]+", "-", name).lower()], specification.removeprefix(name)), line


def test_requirements_use_only_what_the_bootstrap_reads():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    for line in project["dependencies"] + project["optional-dependencies"]["test"]:
        pattern = r'[\w-]+((>=|<|==)[\d.]+,?)+(; python_version (>=|<|==) "[\d.]+")?'
        assert re.fullmatch(pattern, line), line


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="None has no reference count since Python 3.12 (PEP 683)")
def test_painting_keeps_the_references_to_none(qapp):
    """WORKAROUND(qt-6.12): PySide6 6.12.0 loses one reference to None in each call that returns nothing."""
    from PySide6.QtCore import Qt
    from PySide6.QtGui import QImage, QPainter

    image = QImage(8, 8, QImage.Format.Format_ARGB32)
    painter = QPainter(image)
    before = sys.getrefcount(None)
    for _ in range(1000):
        painter.setPen(Qt.PenStyle.NoPen)
    lost = before - sys.getrefcount(None)
    painter.end()
    assert lost < 100
