"""Short names of paths, each of which says which it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path


def path_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """The last part of each path; where several have the same, so much of the folder too as tells them apart.

    "gpt2", but "model.safetensors (gpt2)" beside "model.safetensors (bert)". The paths differ.
    """
    depths = [0] * len(paths)
    while True:
        names = [_name(path, depth) for path, depth in zip(paths, depths, strict=True)]
        times = Counter(names)
        shared = [
            index for index, path in enumerate(paths) if times[names[index]] > 1 and depths[index] < len(path.parts)
        ]
        if not shared:
            return tuple(names)
        for index in shared:
            depths[index] += 1


def _name(path: Path, depth: int) -> str:
    """The last part, with so many of the folders above it."""
    name = path.name or str(path)
    return f"{name} ({Path(*path.parent.parts[-depth:])})" if depth else name
