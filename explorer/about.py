"""Which version this is, and of what it is made."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

_PARTS = ("torch", "PySide6_Essentials", "pyqtgraph", "numpy", "safetensors", "tokenizers", "sentencepiece")


def about_text() -> str:
    """A few lines for the About box and for reports."""
    lines = [f"Transformer Explorer {_version('transformer-explorer')}", "", f"Python {platform.python_version()}"]
    return "\n".join([*lines, *(f"{part} {_version(part)}" for part in _PARTS)])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a checkout, which is not installed
        return "from a checkout"
