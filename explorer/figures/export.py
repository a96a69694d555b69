"""From what there is to export and what a person chooses to the figure, the query and the words around them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from core_model.cancel import CancelToken
from explorer.figures.data import FACTS, AttentionTable, csv_text, estimated_bytes
from explorer.figures.files import DATA_FORMATS, format_of
from explorer.figures.queries import FigureQuery, TableQuery
from explorer.figures.spec import FigureOptions, FigureSpec, Provenance
from explorer.state.app_state import AppState
from explorer.state.export import ExportChoices, FormatName
from explorer.state.queries import TraceQuery, traced
from explorer.viewmodels.records import BoolArray, FloatArray, HeatmapPicture, Span
from explorer.viewmodels.sizes import bytes_text, shortened

FORMAT_LABELS: dict[FormatName, tuple[str, str]] = {
    "svg": ("SVG", "Vector figure; text stays text."),
    "pdf": ("PDF", "Vector figure with its fonts."),
    "png": ("PNG", "Pixels, as fine as chosen."),
    "csv": ("CSV", "Exact weights; masked cells are empty."),
    "npz": ("NPZ", "Exact weights and mask for numpy."),
}
"""Title of each format and what it is."""

WIDTH_PRESETS: tuple[tuple[str, float], ...] = (
    ("One column", 85.0),
    ("One and a half", 114.0),
    ("Two columns", 174.0),
)
"""Widths of journals in millimetres."""

CLIPBOARD_CELLS = 1_000_000
"""More are a matter for a file."""
_LONGEST_NAME = 80
"""Characters of a model's name in that of a file."""
_GLIMPSE = 24, 8
"""Rows and columns of a CSV that are shown before it is written."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExportSource:
    """What there is to export: the pictures of the panel, where they come from, and the run their numbers come from."""

    whole: HeatmapPicture
    on_screen: HeatmapPicture
    provenance: Provenance
    trace: TraceQuery

    def picture(self, choices: ExportChoices) -> HeatmapPicture:
        return self.whole if choices.whole else self.on_screen

    def spec(self, choices: ExportChoices) -> FigureSpec:
        """The figure that these choices make. Raises ExportError for a choice outside its limits."""
        return FigureSpec(
            picture=self.picture(choices),
            provenance=self.provenance,
            options=FigureOptions(
                width_mm=choices.width_mm,
                dpi=choices.dpi,
                font_size=choices.font_size,
                colormap=choices.colormap,
                labels=choices.labels,
                caption=choices.caption,
            ),
        )

    def query(self, choices: ExportChoices, path: Path) -> FigureQuery | TableQuery:
        """What writes the file. Raises ExportError for a name without a known ending."""
        if format_of(path) in DATA_FORMATS:
            return self.table_query(choices, path)
        return FigureQuery(spec=self.spec(choices), path=path)

    def table_query(self, choices: ExportChoices, path: Path | None) -> TableQuery:
        """What writes the numbers, or makes a CSV text of them when there is no path."""
        picture = self.picture(choices)
        return TableQuery(trace=self.trace, provenance=self.provenance, rows=picture.rows, cols=picture.cols, path=path)

    def n_cells(self, choices: ExportChoices) -> int:
        """Cells of the chosen part, pooled or not."""
        n_rows, n_cols = _extent(self.picture(choices))
        return n_rows * n_cols

    def summary(self, choices: ExportChoices) -> str:
        """The chosen part in words, with the size of the file where it holds numbers."""
        picture = self.picture(choices)
        n_rows, n_cols = _extent(picture)
        words = f"{n_rows:,} queries x {n_cols:,} keys"
        if not picture.is_whole:
            words += f", from query {picture.rows[0]} and key {picture.cols[0]}"
        if choices.format in DATA_FORMATS:
            words += f", about {bytes_text(estimated_bytes((n_rows, n_cols), choices.format))}"
        return words

    def glimpse(self, choices: ExportChoices) -> str:
        """The first lines of a CSV, or what an NPZ holds; the numbers of a pooled picture are not known yet."""
        picture = self.picture(choices)
        n_rows, n_cols = _extent(picture)
        if choices.format == "npz":
            arrays = (("attention", f"float32 [{n_rows}, {n_cols}]"), ("masked", f"bool [{n_rows}, {n_cols}]"))
            tokens = (("query_tokens", f"text [{n_rows}]"), ("key_tokens", f"text [{n_cols}]"))
            facts = tuple((name, str(getattr(self.provenance, name))[:40]) for name in FACTS)
            return "\n".join(f"{name:14}{value}" for name, value in (*arrays, *tokens, *facts))
        if picture.weights is None or not picture.is_exact:
            return self.summary(choices)
        return csv_text(_first_cells(self.provenance, picture, picture.weights), CancelToken(), _unheard)

    def file_name(self, choices: ExportChoices) -> str:
        """A name that says which head it is, made of characters that every file system takes."""
        source = self.provenance
        name = f"{shortened(source.model, _LONGEST_NAME)} {source.site} L{source.layer} H{source.head}"
        plain = re.sub(r"[^\w.-]+", "-", name).strip("-.")
        return f"{plain}.{choices.format}"


def export_source(state: AppState, whole: HeatmapPicture, tile: HeatmapPicture | None) -> ExportSource | None:
    """What there is to export of the matrix: `whole`, and `tile` where a closer part or a better whole lies over.

    None while the picture is not that of the model and text asked for last.
    """
    model, chosen, trace = state.current_model, state.selection, traced(state)
    if model is None or chosen.site is None or trace is None:
        return None
    port = state.viewport
    if tile is not None and tile.is_whole:
        whole = tile
    on_screen = tile or (part_on_screen(whole, port.rows, port.cols) if port else whole)
    provenance = Provenance.of(model.info, state.inputs, site=chosen.site, layer=chosen.layer, head=chosen.head)
    return ExportSource(whole=whole, on_screen=on_screen, provenance=provenance, trace=trace)


def part_on_screen(whole: HeatmapPicture, rows: Span, cols: Span) -> HeatmapPicture:
    """The part of an exact picture between two ranges of tokens; a pooled one is returned whole."""
    if not whole.is_exact:
        return whole
    part = slice(*rows), slice(*cols)
    return replace(
        whole,
        values=whole.values[part],
        masked=_cut(whole.masked, part),
        missing=_cut(whole.missing, part),
        weights=_cut(whole.weights, part),
        rows=rows,
        cols=cols,
        given=None,
        received=None,
    )


def _cut(cells: BoolArray | FloatArray | None, part: tuple[slice, slice]):
    return None if cells is None else cells[part]


def _first_cells(source: Provenance, picture: HeatmapPicture, weights: FloatArray) -> AttentionTable:
    rows = picture.rows[0], min(picture.rows[1], picture.rows[0] + _GLIMPSE[0])
    cols = picture.cols[0], min(picture.cols[1], picture.cols[0] + _GLIMPSE[1])
    part = slice(rows[1] - rows[0]), slice(cols[1] - cols[0])
    masked = np.zeros(weights.shape, dtype=bool) if picture.masked is None else picture.masked
    return AttentionTable(
        provenance=source,
        rows=rows,
        cols=cols,
        query_tokens=picture.row_labels[slice(*rows)],
        key_tokens=picture.col_labels[slice(*cols)],
        read=lambda start, stop: (weights[part].astype(np.float32), masked[part]),
    )


def _unheard(fraction: float) -> None:
    """Nobody waits for this."""


def _extent(picture: HeatmapPicture) -> tuple[int, int]:
    return picture.rows[1] - picture.rows[0], picture.cols[1] - picture.cols[0]
