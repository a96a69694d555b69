"""How the queries of the export are answered, on a lane's thread."""

from __future__ import annotations

from pathlib import Path

from core_model.cancel import CancelToken, Progress
from explorer.figures.data import AttentionTable, Block, csv_text, save_table
from explorer.figures.files import format_of
from explorer.figures.queries import FigureQuery, Preview, PreviewQuery, TableQuery
from explorer.workers.engine import Engine


def answer_preview(engine: Engine, query: PreviewQuery, cancel: CancelToken, progress: Progress) -> Preview:
    from explorer.figures.render import preview, unprintable  # matplotlib takes half a second: only when asked

    return Preview(png=preview(query.spec, query.format), unprintable=unprintable(query.spec))


def answer_figure(engine: Engine, query: FigureQuery, cancel: CancelToken, progress: Progress) -> Path:
    from explorer.figures.render import save_figure

    save_figure(query.spec, query.path, format_of(query.path))
    return query.path


def answer_table(engine: Engine, query: TableQuery, cancel: CancelToken, progress: Progress) -> Path | str:
    table = attention_table(engine, query, cancel, progress)
    if query.path is None:
        return csv_text(table, cancel, progress)
    save_table(table, query.path, format_of(query.path), cancel, progress)
    return query.path


def attention_table(engine: Engine, query: TableQuery, cancel: CancelToken, progress: Progress) -> AttentionTable:
    """The exact weights of one head as a table that is computed while it is written.

    Raises TraceError naming the site, layer, head or range that the model does not have.
    """
    from core_model.trace.views import checked_range

    source = query.provenance
    place = {"site": source.site, "layer": source.layer, "head": source.head}
    trace = engine.trace(query.trace, cancel, progress)
    scores = trace.head(**place)
    rows = checked_range("rows", query.rows, scores.n_queries)
    cols = checked_range("cols", query.cols, scores.n_keys)
    tokens = engine.tokens(query.trace.source, query.trace.inputs)

    def read(start: int, stop: int) -> Block:
        size = stop - start, cols.stop - cols.start  # a pixel a cell
        view = trace.view(**place, rows=(start, stop), cols=(cols.start, cols.stop), size=size, cancel=cancel)
        return view.values, view.masked

    return AttentionTable(
        provenance=source,
        rows=(rows.start, rows.stop),
        cols=(cols.start, cols.stop),
        query_tokens=tokens.queries(source.site).texts[rows],
        key_tokens=tokens.keys(source.site).texts[cols],
        read=read,
    )
