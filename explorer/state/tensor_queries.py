"""What the tensor browser wants to know. Asked of the checkpoint alone: its tensors can be seen where no model runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from core_model.results import Pooling, TensorView
from explorer.state.app_state import AppState
from explorer.state.queries import LaneName, Query
from explorer.state.source import Source, Span
from explorer.state.tensors import HeadCut, SpectrumAnswer, Subject, TensorAnswer, TensorList

PICTURE_SIZE = 1024, 1024
"""Tensors up to this many rows and columns cross whole; larger ones pooled, with exact parts on zoom."""


@dataclass(frozen=True, kw_only=True)
class TensorListQuery(Query[TensorList]):
    """Which tensors does this checkpoint hold?"""

    lane: ClassVar[LaneName] = "io"
    failed: ClassVar[str] = "The tensors cannot be listed"
    source: Source


@dataclass(frozen=True, kw_only=True)
class TensorQuery(Query[TensorAnswer]):
    """What is in this tensor?"""

    doing: ClassVar[str] = "reading a tensor"
    lane: ClassVar[LaneName] = "io"
    failed: ClassVar[str] = "This tensor cannot be read"
    remedy: ClassVar[str] = "reopen"
    source: Source
    subject: Subject
    pooling: Pooling


@dataclass(frozen=True, kw_only=True)
class TensorPartQuery(Query[TensorView]):
    """A part of this tensor's picture, closer."""

    doing: ClassVar[str] = "reading a tensor"
    lane: ClassVar[LaneName] = "io"
    failed: ClassVar[str] = "This tensor cannot be read"
    remedy: ClassVar[str] = "reopen"
    source: Source
    subject: Subject
    pooling: Pooling
    rows: Span
    cols: Span
    size: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class SpectrumQuery(Query[SpectrumAnswer]):
    """What are the singular values of this tensor?"""

    doing: ClassVar[str] = "reading a tensor"
    lane: ClassVar[LaneName] = "io"
    rank: ClassVar[int] = 2
    failed: ClassVar[str] = "There are no singular values to show"
    source: Source
    subject: Subject


def subject_of(state: AppState) -> Subject | None:
    """What the browser looks at, while the open checkpoint has it."""
    chosen, model, head = state.tensors, state.current_model, state.selection
    if model is None or chosen.source != state.source:
        return None
    if chosen.part is None:
        return chosen.name
    if head.site is None or model.info.refusal is not None:
        return None
    return HeadCut(site=head.site, layer=head.layer, head=head.head, part=chosen.part)


def tensor_list_query(state: AppState) -> TensorListQuery | None:
    if state.source is None or state.current_model is None:
        return None
    return TensorListQuery(source=state.source)


def tensor_query(state: AppState) -> TensorQuery | None:
    subject = subject_of(state)
    if state.source is None or subject is None:
        return None
    return TensorQuery(source=state.source, subject=subject, pooling=state.tensors.pooling)


def tensor_part_query(state: AppState) -> TensorPartQuery | None:
    """The part on screen, closer than the whole shows it."""
    whole, port = tensor_query(state), state.tensors.port
    if whole is None or port is None or port.subject != whole.subject:
        return None
    return TensorPartQuery(
        source=whole.source,
        subject=whole.subject,
        pooling=whole.pooling,
        rows=port.rows,
        cols=port.cols,
        size=port.size,
    )


def spectrum_query(state: AppState) -> SpectrumQuery | None:
    subject = subject_of(state)
    if state.source is None or subject is None:
        return None
    return SpectrumQuery(source=state.source, subject=subject)
