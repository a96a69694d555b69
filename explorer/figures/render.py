"""Drawing a figure with matplotlib: SVG, PDF or PNG of exact size, the same bytes for the same figure.

The cells are one picture in which every cell is a block of whole pixels, so that viewers which smooth pictures blur a
small part of a cell only, and neighbours leave no seam. All text stays text. Runs off the UI thread.
"""

from __future__ import annotations

import functools
import io
import math
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray

from explorer.figures.files import ExportError, whole_file
from explorer.figures.layout import CAPTION_SCALE, LINE, MARGIN, Box, Layout, hidden_cells, lay_out
from explorer.figures.spec import RESOLUTIONS, FigureSpec
from explorer.figures.textures import dots, hatch_lines
from explorer.theme.colors import LIGHT
from explorer.viewmodels.colormaps import lookup_table

CREATOR = "Transformer Explorer"
FAMILIES = (
    *("Arial", "Helvetica", "Liberation Sans", "DejaVu Sans"),
    *("Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "PingFang SC", "Microsoft YaHei", "Hiragino Sans GB"),
    *("WenQuanYi Zen Hei", "Droid Sans Fallback", "Yu Gothic", "Malgun Gothic", "Noto Sans Arabic", "Noto Sans Hebrew"),
    *("Noto Sans Devanagari", "Noto Sans Thai", "Segoe UI Symbol", "Segoe UI Emoji", "Apple Symbols", "Noto Emoji"),
    *("Noto Sans Symbols", "Noto Sans Symbols 2", "Arial Unicode MS"),
)
"""In order of preference: a character comes from the first installed one that has it. matplotlib brings DejaVu Sans."""

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text as text
    "svg.hashsalt": CREATOR,  # the same ids each time
    "pdf.fonttype": 42,  # whole TrueType outlines: text as text
    "axes.linewidth": 0.4,
    "text.usetex": False,
    "text.hinting": "no_hinting",  # letters as wide as they were measured
    "font.size": 7.0,
}
_FRAME, _HATCH, _MUTED = LIGHT.text_muted, LIGHT.text_disabled, LIGHT.text_muted
_PAPER = np.uint8(255)
_LEGIBLE_PIXELS = 2400
"""Least length in pixels of the longer side of the cells' picture in SVG and PDF."""
_SWATCH = 1.4
"""Width of the legend's samples in font sizes."""


def save_figure(spec: FigureSpec, path: Path, format: str) -> None:
    """Write the figure whole or not at all; ExportError when it cannot be drawn or written."""
    content = render(spec, format)
    with whole_file(path) as file:
        file.write(content)


def render(spec: FigureSpec, format: str) -> bytes:
    """The bytes of the figure as "svg", "pdf" or "png"; ExportError when its width or resolution is too small."""
    layout = lay_out(spec, fonts())
    if format == "png":
        _require_pixels(spec, layout)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # whatever the person's matplotlibrc says
        matplotlib.rcParams.update(_STYLE)
        figure = _draw(spec, layout, format)
        buffer = io.BytesIO()
        figure.savefig(buffer, format=format, dpi=spec.options.dpi, metadata=_metadata(spec, format))
    return buffer.getvalue()


def preview(spec: FigureSpec, format: str) -> bytes:
    """The PNG that shows what a figure of a format will be: of SVG and PDF, which have no resolution, in one that has a
    pixel for every cell."""
    if format != "png":
        dpi = max(spec.options.dpi, min(_least_dpi(spec, lay_out(spec, fonts())), RESOLUTIONS[1]))
        spec = replace(spec, options=replace(spec.options, dpi=dpi))
    return render(spec, "png")


def unprintable(spec: FigureSpec) -> str:
    """The characters of the figure that no installed font has, each once: the figure spells their codes."""
    text = "".join((*spec.row_texts, *spec.col_texts, spec.caption if spec.options.caption else ""))
    return "".join(dict.fromkeys(character for character in text if fonts().printable(character) != character))


class FontSet:
    """The installed fonts of FAMILIES and what can be written with them."""

    def __init__(self) -> None:
        installed = set(font_manager.get_font_names())
        self.families = [family for family in FAMILIES if family in installed]
        self._characters = frozenset[int]().union(*(self._charmap(family) for family in self.families))

    @staticmethod
    def _charmap(family: str) -> frozenset[int]:
        path = font_manager.findfont(font_manager.FontProperties(family=[family]))
        return frozenset(font_manager.get_font(path).get_charmap())

    def properties(self, size: float) -> font_manager.FontProperties:
        return font_manager.FontProperties(family=self.families, size=size)

    @functools.lru_cache(maxsize=8192)  # noqa: B019 - there is one FontSet a process
    def width(self, text: str, size: float) -> float:
        """Points that the text takes at a font size."""
        return text_to_path.get_text_width_height_descent(text, self.properties(size), ismath=False)[0]

    def printable(self, text: str) -> str:
        """The text with characters that no font has spelled as codes; those without a shape of their own left out."""
        return "".join(
            character
            if ord(character) in self._characters
            else ""
            if unicodedata.category(character) in ("Mn", "Cf")
            else f"\\u{ord(character):x}"
            for character in text
        )


@functools.cache
def fonts() -> FontSet:
    """The fonts of this machine, looked up once."""
    return FontSet()


def _least_dpi(spec: FigureSpec, layout: Layout) -> int:
    """The resolution from which each cell has a pixel of its own."""
    lengths = layout.matrix.height, layout.matrix.width
    return math.ceil(max(72 * n / length for n, length in zip(spec.picture.values.shape, lengths, strict=True)) - 1e-6)


def _require_pixels(spec: FigureSpec, layout: Layout) -> None:
    """Refuse a PNG in which cells would have to be left out."""
    least = _least_dpi(spec, layout)
    if least > spec.options.dpi:
        n_rows, n_cols = spec.picture.values.shape
        raise ExportError(
            f"A PNG {spec.options.width_mm:g} mm wide at {spec.options.dpi} dpi has too few pixels for "
            f"{n_rows} x {n_cols} cells: choose at least {least} dpi, a larger width, or SVG or PDF."
        )


def _metadata(spec: FigureSpec, format: str) -> dict[str, str | None]:
    """What the file says about itself: no dates, no paths, no versions of libraries."""
    if format == "pdf":
        return {
            "Title": spec.title, "Subject": spec.caption, "Creator": CREATOR, "Producer": CREATOR, "CreationDate": None
        }  # fmt: skip
    if format == "svg":
        return {"Title": spec.title, "Description": spec.caption, "Creator": CREATOR, "Date": None}
    return {"Title": spec.title, "Description": spec.caption, "Software": CREATOR}


class _Page:
    """A matplotlib figure addressed in points from the top left corner."""

    def __init__(self, layout: Layout, pixel: float | None) -> None:
        width = layout.width if pixel is None else round(layout.width / pixel) * pixel
        self.size = width, layout.height
        self.figure = Figure(figsize=(width / 72 + 1e-9, layout.height / 72 + 1e-9), facecolor="white")

    def axes(self, box: Box) -> Axes:
        """Axes that fill the box, without ticks of their own."""
        width, height = self.size
        axes = self.figure.add_axes((box.left / width, 1 - box.bottom / height, box.width / width, box.height / height))
        axes.set(xticks=[], yticks=[])
        for spine in axes.spines.values():
            spine.set_color(_FRAME)
        return axes

    def text(self, x: float, y: float, text: str, size: float, color: str = LIGHT.text, **options: Any) -> None:
        """Text at a point; never read as mathematics."""
        self.figure.text(
            x / self.size[0],
            1 - y / self.size[1],
            text,
            fontproperties=fonts().properties(size),
            color=color,
            parse_math=False,
            **options,
        )


def _draw(spec: FigureSpec, layout: Layout, format: str) -> Figure:
    page = _Page(layout, 72 / spec.options.dpi if format == "png" else None)
    axes = page.axes(layout.matrix)
    _draw_matrix(axes, spec, layout, magnify=format != "png")
    _draw_labels(page, axes, spec, layout)
    _draw_bar(page, spec, layout)
    _draw_legend(page, layout)
    size = CAPTION_SCALE * layout.font_size
    for number, line in enumerate(layout.caption):
        page.text(MARGIN, layout.caption_y + number * LINE * size, line, size, _MUTED, va="top")
    return page.figure


def _draw_matrix(axes: Axes, spec: FigureSpec, layout: Layout, *, magnify: bool) -> None:
    picture = spec.picture
    masked, missing = hidden_cells(spec)
    pixels = np.where((masked | missing)[..., None], _PAPER, _colors(spec))
    (top, bottom), (left, right), (down, across) = picture.rows, picture.cols, picture.cells
    n = (bottom - top) / down, (right - left) / across
    unit = 0.0 if magnify else 72 / spec.options.dpi
    pixel = unit * (bottom - top) / layout.matrix.height, unit * (right - left) / layout.matrix.width
    (_, reached_bottom), (_, reached_right) = picture.reach(pixel)
    extent = left, reached_right, reached_bottom, top
    times = max(1, -(-_LEGIBLE_PIXELS // max(picture.values.shape))) if magnify else 1
    pixels = pixels.repeat(times, axis=0).repeat(times, axis=1)
    is_cut = (reached_bottom, reached_right) != (bottom, right)  # of the last pixels there is a part
    axes.imshow(pixels, extent=extent, aspect="auto", interpolation="none", clip_on=is_cut)
    axes.set(xlim=(left, right), ylim=(bottom, top))
    for kind, cells in (("masked", masked), ("not computed", missing)):
        if cells.any():
            _draw_texture(axes, layout.matrix, kind, cells, n)


def _colors(spec: FigureSpec) -> NDArray[np.uint8]:
    """[r, c, 3] red, green, blue of each cell, by the colour map and levels of the screen."""
    low, high = spec.picture.levels
    share = np.nan_to_num((spec.picture.values - low) / ((high - low) or 1.0))
    return lookup_table(spec.colormap)[np.rint(share.clip(0, 1) * 255).astype(np.uint8), :3]


def _draw_labels(page: _Page, axes: Axes, spec: FigureSpec, layout: Layout) -> None:
    """Tokens and titles of both axes: rows at the left, columns on top."""
    picture, size = spec.picture, layout.font_size
    for axis, labels, rotation in (
        (axes.yaxis, layout.rows, 0),
        (axes.xaxis, layout.cols, 90 if layout.cols.turned else 0),
    ):
        axis.set_ticks(
            [index + 0.5 for index, _ in labels.labels],
            labels=[text for _, text in labels.labels],
            fontproperties=fonts().properties(labels.size),
            color=LIGHT.text,
            parse_math=False,
            rotation=rotation,
        )
    axes.tick_params(length=0.25 * size, pad=0.25 * size, width=0.4, color=_FRAME)
    axes.tick_params(bottom=False, top=True, labelbottom=False, labeltop=True)
    matrix = layout.matrix
    middle = matrix.left + matrix.width / 2, matrix.top + matrix.height / 2
    page.text(middle[0], layout.col_title_y, picture.col_title, size, LIGHT[picture.col_role], ha="center", va="top")
    page.text(
        layout.row_title_x, middle[1], picture.row_title, size, LIGHT[picture.row_role],
        ha="center", va="center", rotation=90,
    )  # fmt: skip


def _draw_bar(page: _Page, spec: FigureSpec, layout: Layout) -> None:
    """The colour bar with its ticks and the name of the scale."""
    low, high = spec.picture.levels
    axes, size = page.axes(layout.bar), layout.font_size
    colors = lookup_table(spec.colormap)[::-1, None, :3]
    axes.imshow(colors, extent=(0, 1, low, high), aspect="auto", interpolation="none", clip_on=False)
    axes.set_yticks(
        [value for value, _ in layout.bar_ticks],
        labels=[text for _, text in layout.bar_ticks],
        fontproperties=fonts().properties(size),
        color=LIGHT.text,
        parse_math=False,
    )
    axes.yaxis.tick_right()
    axes.tick_params(length=0.25 * size, pad=0.25 * size, width=0.4, color=_FRAME)
    name = fonts().printable(spec.picture.scale_name)
    middle = layout.bar.top + layout.bar.height / 2
    page.text(layout.bar_title_x, middle, name, size, ha="center", va="center", rotation=90)


def _draw_legend(page: _Page, layout: Layout) -> None:
    """A sample and a name for each kind of cell that is not on the colour scale."""
    size = layout.font_size
    left = layout.matrix.left
    for kind in layout.legend:
        box = Box(left=left, top=layout.legend_y, width=_SWATCH * size, height=size)
        _draw_texture(page.axes(box), box, kind, np.ones((1, 1), dtype=bool), (1, 1))
        page.text(box.right + 0.5 * size, box.top + size / 2, kind, size, va="center_baseline")
        left = box.right + size + fonts().width(kind, size) + size


def _draw_texture(axes: Axes, box: Box, kind: str, cells: NDArray[np.bool_], n: tuple[float, float]) -> None:
    """Fine diagonal lines over masked cells, dots over those not computed; `n` cells fill the axes down and across."""
    to_axes = np.array([1 / box.width, -1 / box.height])
    if kind == "masked":
        lines = [0, 1] + hatch_lines(cells, box.width, box.height, n) * to_axes
        hatch = LineCollection(list(lines), colors=_HATCH, linewidths=0.35, transform=axes.transAxes, clip_on=False)
        axes.add_collection(hatch, autolim=False)
    else:
        x, y = ([0, 1] + dots(cells, box.width, box.height, n) * to_axes).T
        axes.plot(x, y, "o", markersize=0.7, markeredgewidth=0, color=_HATCH, transform=axes.transAxes, clip_on=False)
