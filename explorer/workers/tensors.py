"""How questions about stored tensors and heads' weights are answered: from files, a piece at a time."""

from __future__ import annotations

from core_model.cancel import CancelToken, Progress
from core_model.pieces import PiecewiseArray, as_matrix
from core_model.results import TensorView
from explorer.state.source import Source
from explorer.state.tensor_queries import PICTURE_SIZE, SpectrumQuery, TensorListQuery, TensorPartQuery, TensorQuery
from explorer.state.tensors import SpectrumAnswer, Subject, TensorAnswer, TensorList
from explorer.workers.engine import Engine


def answer_tensor_list(engine: Engine, query: TensorListQuery, cancel: CancelToken, progress: Progress) -> TensorList:
    return TensorList(source=query.source, tensors=tuple(engine.checkpoint(query.source).tensors.values()))


def answer_tensor(engine: Engine, query: TensorQuery, cancel: CancelToken, progress: Progress) -> TensorAnswer:
    from core_model.analysis.tensor_statistics import tensor_statistics
    from core_model.analysis.tensor_view import tensor_view

    tensor = _tensor(engine, query.source, query.subject)
    stored = engine.checkpoint(query.source).tensors
    statistics = tensor_statistics(tensor, cancel=cancel, progress=lambda done: progress(done * 2 / 3))
    view = tensor_view(
        tensor,
        size=PICTURE_SIZE,
        pooling=query.pooling,
        cancel=cancel,
        progress=lambda done: progress((2 + done) / 3),
    )
    return TensorAnswer(
        subject=query.subject,
        info=stored[query.subject] if isinstance(query.subject, str) else None,
        shape=tensor.shape,
        statistics=statistics,
        view=view,
    )


def answer_tensor_part(engine: Engine, query: TensorPartQuery, cancel: CancelToken, progress: Progress) -> TensorView:
    from core_model.analysis.tensor_view import tensor_view

    tensor = _tensor(engine, query.source, query.subject)
    view = tensor_view(
        tensor,
        rows=query.rows,
        cols=query.cols,
        size=query.size,
        pooling=query.pooling,
        cancel=cancel,
        progress=progress,
    )
    assert view is not None, "a part is asked of what has a picture"
    return view


def answer_spectrum(engine: Engine, query: SpectrumQuery, cancel: CancelToken, progress: Progress) -> SpectrumAnswer:
    from core_model.analysis.singular_values import singular_values

    tensor = _tensor(engine, query.source, query.subject)
    values = singular_values(tensor, cancel=cancel, progress=progress)
    return SpectrumAnswer(subject=query.subject, shape=as_matrix(tensor.shape), values=values)


def _tensor(engine: Engine, source: Source, subject: Subject) -> PiecewiseArray:
    """A stored tensor, of which nothing is read yet, or a head's map or circuit, whose weights are."""
    checkpoint = engine.checkpoint(source)
    if isinstance(subject, str):
        return checkpoint.tensor(subject)
    from core_model.analysis.head_weights import head_weights

    config = checkpoint.config
    assert config is not None, "a head is asked for of a model that has some"
    return head_weights(checkpoint.read_weight, config, subject.site, subject.layer, subject.head, subject.part)
