"""Checkpoints: opening what people have, safely, and writing what they can use elsewhere.

`open_checkpoint` reads names, shapes and configs without torch; torch is imported when a model is loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core_model.checkpoint.open import Checkpoint, open_checkpoint

__all__ = ["Checkpoint", "open_checkpoint"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from core_model.checkpoint import open as opening

        return getattr(opening, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
