"""How each kind of query is answered: one function a kind, on a lane's thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from core_model.cancel import CancelToken, Progress
from core_model.results import CellFacts, read_only
from explorer.state.answers import HeadsAnswer, MatrixAnswer
from explorer.state.app_state import OpenedModel, Tokens, TraceFacts
from explorer.state.queries import (
    CellQuery,
    HeadsQuery,
    MatrixQuery,
    OpenQuery,
    Query,
    TokensQuery,
    TraceQuery,
)

if TYPE_CHECKING:
    from explorer.workers.engine import Engine

AnswerFunction: TypeAlias = Callable[["Engine", Any, CancelToken, Progress], object]


def _open(engine: Engine, query: OpenQuery, cancel: CancelToken, progress: Progress) -> OpenedModel:
    checkpoint = engine.checkpoint(query.source)
    config = checkpoint.config
    return OpenedModel(
        source=query.source,
        info=checkpoint.info,
        has_tokenizer=checkpoint.tokenizer is not None,
        takes_pair=config is not None and config.decoder is None and checkpoint.tokenizer is not None,
        takes_target=config is not None and config.decoder is not None and config.encoder is not None,
    )


def _tokens(engine: Engine, query: TokensQuery, cancel: CancelToken, progress: Progress) -> Tokens:
    inputs = engine.inputs(query.source, query.inputs)
    has_encoder = any(site.site.startswith("encoder") for site in engine.checkpoint(query.source).info.sites)
    return Tokens(
        source=query.source,
        inputs=query.inputs,
        encoder=inputs.tokens if has_encoder else None,
        decoder=inputs.decoder_tokens if has_encoder else inputs.tokens,
    )


def _trace(engine: Engine, query: TraceQuery, cancel: CancelToken, progress: Progress) -> TraceFacts:
    start = time.perf_counter()
    trace = engine.trace(query, cancel, progress)
    return TraceFacts(
        source=query.source, inputs=query.inputs, n_bytes=trace.n_bytes, seconds=time.perf_counter() - start
    )


def _heads(engine: Engine, query: HeadsQuery, cancel: CancelToken, progress: Progress) -> HeadsAnswer:
    trace = engine.trace(query.trace, cancel, progress)
    return HeadsAnswer(thumbnails=read_only(trace.thumbnails(query.site, size=query.size)))


def _matrix(engine: Engine, query: MatrixQuery, cancel: CancelToken, progress: Progress) -> MatrixAnswer:
    trace = engine.trace(query.trace, cancel, progress)
    tokens = _tokens(engine, TokensQuery(source=query.trace.source, inputs=query.trace.inputs), cancel, progress)
    head = {"site": query.site, "layer": query.layer, "head": query.head, "rows": query.rows, "cancel": cancel}
    view = trace.view(**head, cols=query.cols, size=query.size, reduce=query.reduce)
    peaks = trace.view(**head, cols=None, size=(view.shape[0], 1), reduce="max")
    return MatrixAnswer(
        view=view,
        row_peaks=read_only(peaks.values[:, 0]),
        queries=tokens.queries(query.site),
        keys=tokens.keys(query.site),
    )


def _cell(engine: Engine, query: CellQuery, cancel: CancelToken, progress: Progress) -> CellFacts:
    trace = engine.trace(query.trace, cancel, progress)
    return trace.cell(query.site, query.layer, query.head, query.cell.query, query.cell.key)


ANSWERS: dict[type[Query], AnswerFunction] = {
    OpenQuery: _open,
    TokensQuery: _tokens,
    TraceQuery: _trace,
    HeadsQuery: _heads,
    MatrixQuery: _matrix,
    CellQuery: _cell,
}
