"""What the tensor browser looks at, and what is answered about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from core_model.results import HeadPart, Pooling, TensorInfo, TensorStatistics, TensorView
from explorer.state.source import Source, Span


@dataclass(frozen=True, kw_only=True)
class HeadCut:
    """One of the maps or circuits of a head."""

    site: str
    layer: int
    head: int
    part: HeadPart


Subject: TypeAlias = str | HeadCut
"""A stored tensor by its name, or a part of a head."""


@dataclass(frozen=True, kw_only=True)
class TensorPort:
    """The part of a tensor's picture on screen and the device pixels it has: (down, across)."""

    subject: Subject
    rows: Span
    cols: Span
    size: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class TensorChoice:
    """A stored tensor of a source or, with `part`, that of the head every view shares; and how it is drawn.

    `port` is None while the whole tensor is on screen.
    """

    source: Source | None = None
    name: str | None = None
    part: HeadPart | None = None
    pooling: Pooling = "extreme"
    port: TensorPort | None = None


@dataclass(frozen=True, kw_only=True)
class TensorList:
    """All stored tensors of a checkpoint, in the order of its files."""

    source: Source
    tensors: tuple[TensorInfo, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class TensorAnswer:
    """A tensor as a whole: `info` where it is stored as such, its numbers, and its picture if it has any."""

    subject: Subject
    info: TensorInfo | None
    shape: tuple[int, ...]
    statistics: TensorStatistics
    view: TensorView | None


@dataclass(frozen=True, kw_only=True, eq=False)
class SpectrumAnswer:
    """The singular values of a tensor's matrix, the largest first."""

    subject: Subject
    shape: tuple[int, int]
    values: npt.NDArray[np.float64]
