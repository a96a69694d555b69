"""What the engine answers beside the records of core_model: frozen, read-only, no larger than a screen needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core_model.config import AttentionSpec
from core_model.results import ByteArray, CellFacts, FloatArray, HeatmapView, PatchAttention

if TYPE_CHECKING:
    from core_model.tokenize import Encoding


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadsAnswer:
    """All heads of a site, pooled by maximum: [n_layers, n_heads, size, size], NaN where all is masked.

    `shape` is (n_queries, n_keys) of a whole matrix; `not_numbers` names the layers whose attention holds NaN.
    """

    site: str
    thumbnails: FloatArray
    shape: tuple[int, int]
    not_numbers: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class MatrixAnswer:
    """One head's attention or a part of it, with the tokens of the whole matrix along both axes.

    `row_peaks[r]` is the largest weight anywhere in the rows under pixel row r, not only in the part that is shown.
    """

    view: HeatmapView
    row_peaks: FloatArray
    queries: Encoding
    keys: Encoding


@dataclass(frozen=True, kw_only=True)
class InspectorAnswer:
    """One head as its config describes it, and one cell of it, with its two tokens, when a cell was asked for.

    `similarity` is how alike text and picture are, where the model compares them and was given both.
    """

    layer: int
    head: int
    attention: AttentionSpec
    cell: CellFacts | None = None
    query_text: str = ""
    key_text: str = ""
    similarity: float | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class PictureAnswer:
    """A picture as the model sees it, [Y, X, 3] of 0 to 255, and where one query looks: one of its tokens or a probe.

    `keys` are the tokens of the whole row, the patches last; they are the queries too, but those of a probe.
    """

    seen: ByteArray
    attention: PatchAttention
    queries: Encoding
    keys: Encoding


@dataclass(frozen=True, kw_only=True)
class DeviceOption:
    """A device that can train: its torch name, what people call it, and the precisions it can train in."""

    key: str
    label: str
    precisions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """What this machine can train on, the CPU first."""

    devices: tuple[DeviceOption, ...]
