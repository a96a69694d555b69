"""What a person chose when exporting last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

FormatName: TypeAlias = Literal["svg", "pdf", "png", "csv", "npz"]


@dataclass(frozen=True, kw_only=True)
class ExportChoices:
    """Remembered from one export to the next. Lengths in mm, letters in points, `dpi` for pixels only."""

    format: FormatName = "pdf"
    width_mm: float = 85.0
    dpi: int = 300
    font_size: float = 7.0
    colormap: Literal["viridis", "cividis", "magma", "grey"] | None = None
    """None: as on screen."""
    labels: bool = True
    caption: bool = True
    whole: bool = True
    """The whole matrix; otherwise the part on screen."""
