"""What `inspect` says of what is in stored tensors: the numbers of the tensor browser, as text or JSON values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from core_model.analysis.tensor_statistics import tensor_statistics
from core_model.checkpoint import Checkpoint
from core_model.errors import CheckpointError
from core_model.results import TensorInfo, TensorStatistics
from explorer.verbs.progress import ProgressLine

_BARS = 16
_WIDTH = 40


def read_statistics(checkpoint: Checkpoint, name: str) -> TensorStatistics:
    """The numbers of a tensor, read in pieces. CheckpointError names the nearest when there is none of that name."""
    if name not in checkpoint.tensors:
        near = get_close_matches(name, checkpoint.tensors, n=3, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}?" if near else "--tensors lists those there are"
        raise CheckpointError(f"There is no tensor {name!r}: {hint}", tensor=name)
    with ProgressLine("reading") as progress:
        return tensor_statistics(checkpoint.tensor(name), progress=progress.update)


def read_all_statistics(checkpoint: Checkpoint, pattern: str) -> dict[str, TensorStatistics | None]:
    """The same of every tensor whose name the pattern fits; None where values of its type cannot be shown.

    CheckpointError when it fits none.
    """
    names = [name for name in checkpoint.tensors if fnmatchcase(name, pattern)]
    if not names:
        raise CheckpointError(f"No tensor fits {pattern!r}: --tensors lists those there are, and * stands for any text")
    sizes = [checkpoint.tensors[name].n_bytes for name in names]
    total, done = max(sum(sizes), 1), 0
    found: dict[str, TensorStatistics | None] = {}
    with ProgressLine("reading") as line:
        for name, size in zip(names, sizes, strict=True):

            def tell(fraction: float, before: int = done, of: int = size) -> None:
                line.show((before + fraction * of) / total)

            tensor = checkpoint.tensor(name)
            found[name] = tensor_statistics(tensor, progress=tell) if tensor.is_readable else None
            done += size
    return found


def tensor_values(info: TensorInfo, numbers: TensorStatistics) -> dict[str, Any]:
    """The fields of both records; null for what a tensor without finite numbers has not."""
    return {key: _plain(value) for key, value in asdict(info).items()} | statistics_values(numbers)


def statistics_values(numbers: TensorStatistics) -> dict[str, Any]:
    """The numbers alone, with the share of zeros."""
    found = {**asdict(numbers), "share_zero": numbers.share_zero}
    return {key: _plain(value) for key, value in found.items()}


def tensor_rows(info: TensorInfo, numbers: TensorStatistics) -> list[Sequence[str]]:
    """The same for people: name and value."""
    rows: list[Sequence[str]] = [
        ("shape", " x ".join(map(str, info.shape)) or "one number"),
        ("stored", f"{info.n_bytes} bytes as {info.dtype} in {info.file.name}"),
        ("our name", info.site or "-"),
        ("numbers", f"{numbers.n_elements:,}"),
        ("zeros", f"{numbers.n_zero:,}"),
        ("NaN", f"{numbers.n_nan:,}"),
        ("infinite", f"{numbers.n_infinite:,}"),
    ]
    for name, value in (
        ("least", numbers.minimum),
        ("greatest", numbers.maximum),
        ("mean", numbers.mean),
        ("spread", numbers.std),
        ("norm", numbers.norm),
    ):
        rows.append((name, f"{value:.7g}" if math.isfinite(value) else "-"))
    return rows


def statistics_rows(found: Mapping[str, TensorStatistics | None]) -> list[Sequence[str]]:
    """A line a tensor, under a line that names the columns; nothing where nothing was read."""
    rows: list[Sequence[str]] = [("name", "least", "greatest", "mean", "spread", "norm", "zeros")] if found else []
    for name, numbers in found.items():
        if numbers is None:
            rows.append((name, *["-"] * 6))
            continue
        values = (numbers.minimum, numbers.maximum, numbers.mean, numbers.std, numbers.norm)
        told = [f"{value:.4g}" if math.isfinite(value) else "-" for value in values]
        rows.append((name, *told, f"{numbers.share_zero:.1%}" if numbers.n_elements else "-"))
    return rows


def histogram_rows(numbers: TensorStatistics) -> list[Sequence[str]]:
    """The histogram in at most _BARS rows: range, count, a bar."""
    n_joined = max(1, len(numbers.counts) // _BARS)
    starts = range(0, len(numbers.counts), n_joined)
    counts = [int(numbers.counts[start : start + n_joined].sum()) for start in starts]
    return [
        (
            f"{numbers.edges[start]:.4g} to {numbers.edges[start + n_joined]:.4g}",
            f"{count:,}",
            "#" * math.ceil(_WIDTH * count / max(counts)),
        )
        for start, count in zip(starts, counts, strict=True)
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
