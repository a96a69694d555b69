"""Timing that a busy machine cannot easily fool: what is compared runs in turn, and the median of the ratios counts."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from core_model.nn.product import product

N_ROUNDS = 7


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Median seconds of two things that ran in turn, and the median of their ratios, first / second."""

    first: float
    second: float
    ratio: float


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a table: what was measured, against what, what was found, and what it must be."""

    work: str
    reference: str
    found: str
    must_be: str


def seconds(work: Callable[[], object]) -> float:
    """Wall seconds of one call."""
    _wait_for_gpu()
    start = time.perf_counter()
    work()
    _wait_for_gpu()
    return time.perf_counter() - start


def median_seconds(work: Callable[[], object], n: int = N_ROUNDS) -> float:
    """Median of n calls after one that is not counted."""
    work()
    return statistics.median(seconds(work) for _ in range(n))


def in_turn(first: Callable[[], object], second: Callable[[], object], n: int = N_ROUNDS) -> Pair:
    """Both once uncounted, then n rounds of first, second."""
    first()
    second()
    times = [(seconds(first), seconds(second)) for _ in range(n)]
    return Pair(
        first=statistics.median(a for a, _ in times),
        second=statistics.median(b for _, b in times),
        ratio=statistics.median(a / b for a, b in times),
    )


def matrix_product_rate(device: torch.device) -> float:
    """Floating-point operations a second of this machine's own float32 product of two 2048 x 2048 matrices, by the
    fastest library there is."""
    a, b = torch.randn(2, 2048, 2048, device=device)
    return 2 * 2048**3 / min(median_seconds(lambda: a @ b), median_seconds(lambda: product(a, b)))


def peak_growth(work: Callable[[], object]) -> int | None:
    """Bytes by which the process grows at its largest while it works; None but on Linux with glibc."""
    clear, give_back = Path("/proc/self/clear_refs"), getattr(ctypes.CDLL(None), "malloc_trim", None)
    if give_back is None or not clear.exists():
        return None
    give_back(0)  # what was freed before would be used again, unseen
    clear.write_text("5")  # the peak begins at what is held now
    before = _peak_bytes()
    work()
    return _peak_bytes() - before


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def print_table(title: str, lines: list[Line]) -> None:
    """A table with columns as wide as they need."""
    rows = [("work", "against", "found", "must be"), *((x.work, x.reference, x.found, x.must_be) for x in lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    print(f"\n{title}")
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)


def _wait_for_gpu() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
