"""How each kind of query is answered: one function a kind, on a lane's thread."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from core_model.cancel import CancelToken, Progress
from core_model.results import PositionEncoding, read_only
from explorer.figures.queries import FigureQuery, PreviewQuery, TableQuery
from explorer.state.answers import (
    DeviceOption,
    HeadsAnswer,
    InspectorAnswer,
    MatrixAnswer,
    PictureAnswer,
    TrainingOptions,
)
from explorer.state.app_state import OpenedModel, Tokens, TraceFacts
from explorer.state.errands import (
    CacheQuery,
    ConvertPickleQuery,
    DownloadQuery,
    HealthQuery,
    KilledRunsQuery,
    OfferQuery,
    SaveAsFamilyQuery,
)
from explorer.state.queries import (
    AnyQuery,
    HeadsQuery,
    InspectorQuery,
    MatrixQuery,
    ModelCardQuery,
    OpenQuery,
    PictureQuery,
    PositionsQuery,
    TokensQuery,
    TraceQuery,
    TrainingOptionsQuery,
)
from explorer.state.tensor_queries import SpectrumQuery, TensorListQuery, TensorPartQuery, TensorQuery
from explorer.viewmodels.token_names import token_names
from explorer.workers.engine import AnswerFunction, Engine
from explorer.workers.errands import (
    answer_cache,
    answer_download,
    answer_health,
    answer_killed_runs,
    answer_offer,
    answer_pickle,
    answer_save,
)
from explorer.workers.exports import answer_figure, answer_preview, answer_table
from explorer.workers.tensors import answer_spectrum, answer_tensor, answer_tensor_list, answer_tensor_part

if TYPE_CHECKING:
    from core_model.tokenize import Encoding


def _open(engine: Engine, query: OpenQuery | ModelCardQuery, cancel: CancelToken, progress: Progress) -> OpenedModel:
    return engine.opened(query.source)


def _tokens(engine: Engine, query: TokensQuery, cancel: CancelToken, progress: Progress) -> Tokens:
    return engine.tokens(query.source, query.inputs)


def _axes(engine: Engine, trace: TraceQuery, site: str) -> tuple[Encoding, Encoding]:
    """The tokens along the rows and the columns of a site's matrix."""
    tokens = engine.tokens(trace.source, trace.inputs)
    return tokens.queries(site), tokens.keys(site)


def _trace(engine: Engine, query: TraceQuery, cancel: CancelToken, progress: Progress) -> TraceFacts:
    start = time.perf_counter()
    trace = engine.trace(query, cancel, progress)
    given = engine.inputs(query.source, query.inputs).notes
    return TraceFacts(
        source=query.source,
        inputs=query.inputs,
        info=engine.checkpoint(query.source).info,
        n_bytes=trace.n_bytes,
        seconds=time.perf_counter() - start,
        not_numbers=tuple(trace.not_numbers(cancel=cancel).items()),
        notes=tuple(note for note in trace.notes if note not in given),
    )


def _heads(engine: Engine, query: HeadsQuery, cancel: CancelToken, progress: Progress) -> HeadsAnswer:
    trace = engine.trace(query.trace, cancel, progress)
    return HeadsAnswer(
        site=query.site,
        thumbnails=read_only(trace.thumbnails(query.site, size=query.size, cancel=cancel)),
        shape=trace.shape(query.site)[2:],
        not_numbers=trace.not_numbers(cancel=cancel).get(query.site, ()),
    )


def _matrix(engine: Engine, query: MatrixQuery, cancel: CancelToken, progress: Progress) -> MatrixAnswer:
    trace = engine.trace(query.trace, cancel, progress)
    head = {"site": query.site, "layer": query.layer, "head": query.head, "rows": query.rows, "cancel": cancel}
    view = trace.view(**head, cols=query.cols, size=query.size, reduce=query.reduce)
    if view.reduce == "max" and view.cols == (0, trace.shape(query.site)[3]):
        peaks = view.values.max(axis=1)
    else:
        peaks = trace.row_peaks(**head, n=view.shape[0], reduce=query.reduce)
    queries, keys = _axes(engine, query.trace, query.site)
    return MatrixAnswer(view=view, row_peaks=read_only(peaks), queries=queries, keys=keys)


def _inspector(engine: Engine, query: InspectorQuery, cancel: CancelToken, progress: Progress) -> InspectorAnswer:
    trace = engine.trace(query.trace, cancel, progress)
    config = engine.checkpoint(query.trace.source).config
    assert config is not None, "a model that was run has a config"
    attention = config.attention_layers()[query.site][query.layer]
    is_compared = config.vectors is not None and config.vectors.compared
    head = InspectorAnswer(
        layer=query.layer,
        head=query.head,
        attention=attention,
        similarity=float(trace.logits[0]) if is_compared and trace.logits is not None else None,
    )
    if query.cell is None:
        return head
    queries, keys = _axes(engine, query.trace, query.site)
    return replace(
        head,
        cell=trace.cell(query.site, query.layer, query.head, query.cell.query, query.cell.key),
        query_text=token_names(queries)[query.cell.query],
        key_text=token_names(keys)[query.cell.key],
    )


def _picture(engine: Engine, query: PictureQuery, cancel: CancelToken, progress: Progress) -> PictureAnswer:
    from core_model.analysis.patches import patch_attention
    from core_model.config import PatchEmbedding

    trace, source, given = engine.trace(query.trace, cancel, progress), query.trace.source, query.trace.inputs
    checkpoint, pixels = engine.checkpoint(source), engine.inputs(source, given).pixels
    assert checkpoint.config is not None and pixels is not None, "a row of patches was asked for"
    patches = checkpoint.config.stacks[query.site.partition(".")[0]].embedding
    assert isinstance(patches, PatchEmbedding)
    size = pixels.shape[1], pixels.shape[2]
    queries, keys = _axes(engine, query.trace, query.site)
    n_rows, n_columns = (n * side for n, side in zip(patches.grid_of(size), patches.patch_size, strict=True))
    return PictureAnswer(
        seen=read_only(checkpoint.as_seen(pixels)[:n_rows, :n_columns]),
        attention=patch_attention(trace, patches, size, query.site, query.layer, query.head, query.query),
        queries=queries,
        keys=keys,
    )


def _positions(engine: Engine, query: PositionsQuery, cancel: CancelToken, progress: Progress) -> PositionEncoding:
    from core_model.analysis.positions import position_encoding

    model = engine.model(query.source, cancel, progress)
    return position_encoding(model, query.stack, query.layer, query.n_positions)


def _training_options(
    engine: Engine, query: TrainingOptionsQuery, cancel: CancelToken, progress: Progress
) -> TrainingOptions:
    from core_model.device import devices, resolve_device
    from core_model.training.precision import precisions

    return TrainingOptions(
        devices=tuple(
            DeviceOption(key=one.key, label=one.label, precisions=precisions(resolve_device(one.key)))
            for one in devices()
        )
    )


ANSWERS: dict[type[AnyQuery], AnswerFunction] = {
    OpenQuery: _open,
    ModelCardQuery: _open,
    TokensQuery: _tokens,
    TraceQuery: _trace,
    HeadsQuery: _heads,
    MatrixQuery: _matrix,
    InspectorQuery: _inspector,
    PictureQuery: _picture,
    PositionsQuery: _positions,
    TrainingOptionsQuery: _training_options,
    TensorListQuery: answer_tensor_list,
    TensorQuery: answer_tensor,
    TensorPartQuery: answer_tensor_part,
    SpectrumQuery: answer_spectrum,
    PreviewQuery: answer_preview,
    FigureQuery: answer_figure,
    TableQuery: answer_table,
    HealthQuery: answer_health,
    SaveAsFamilyQuery: answer_save,
    ConvertPickleQuery: answer_pickle,
    CacheQuery: answer_cache,
    KilledRunsQuery: answer_killed_runs,
    OfferQuery: answer_offer,
    DownloadQuery: answer_download,
}
