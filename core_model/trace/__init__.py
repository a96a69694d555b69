"""Run a model once and keep what every head's attention can be computed from, at any length.

`Inputs` needs no torch; `run_trace` and `Trace` import it when first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core_model.trace.inputs import Inputs

if TYPE_CHECKING:
    from core_model.trace.trace import Trace, run_trace

__all__ = ["Inputs", "Trace", "run_trace"]


def __getattr__(name: str) -> object:
    if name in ("Trace", "run_trace"):
        from core_model.trace import trace

        return getattr(trace, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
