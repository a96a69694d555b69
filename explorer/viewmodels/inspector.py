"""The cell and the head that are looked at, as facts."""

from __future__ import annotations

from core_model.config import (
    AlibiPositions,
    AttentionSpec,
    BucketedPositions,
    DisentangledPositions,
    GridPositions,
    RotaryPositions,
)
from core_model.results import CellFacts
from explorer.state.answers import InspectorAnswer
from explorer.state.app_state import AppState
from explorer.viewmodels.facts import FactRow, FactSection, FactSheet
from explorer.viewmodels.sizes import NOTHING, weight_text

_SCORE = "Before the normaliser, scale included."
_ENTROPY = "How evenly the query shares its attention; 0: one key gets all."
_SIMILARITY = (
    "The cosine of their two vectors, times and plus what the model has learned: how much better this text fits the "
    "picture than another is the difference of the two numbers."
)
_NO_CELL = FactSection(
    title="Cell (point at one)",
    rows=tuple(
        FactRow(name=name, value=NOTHING, mark="unknown", tooltip=tooltip)
        for name, tooltip in (
            ("query", ""),
            ("key", ""),
            ("weight", ""),
            ("rank", ""),
            ("score", _SCORE),
            ("row entropy", _ENTROPY),
        )
    ),
)


def inspector_sheet(answer: InspectorAnswer, state: AppState) -> FactSheet:
    """Facts of the cell, then of its head. Without a cell its rows stay, empty, so that nothing moves."""
    cell = _cell(answer.cell, answer.query_text, answer.key_text) if answer.cell else _NO_CELL
    similarity = () if answer.similarity is None else (_similarity(answer.similarity),)
    return FactSheet(sections=(cell, _head(answer.attention, answer.layer, answer.head), *similarity))


def _cell(cell: CellFacts, query_text: str, key_text: str) -> FactSection:
    rows = (
        FactRow(name=f"query {cell.query}", value=query_text, role="query", is_token=True),
        FactRow(name=f"key {cell.key}", value=key_text, role="key", is_token=True),
        FactRow(name="weight", value="masked", tooltip="The query may not look at this key.")
        if cell.masked
        else FactRow(name="weight", value=weight_text(cell.weight)),
        FactRow(name="rank", value=NOTHING if cell.masked or cell.rank is None else f"{cell.rank} in its row"),
        FactRow(name="score", value=NOTHING if cell.score is None else f"{cell.score:.3f}", tooltip=_SCORE),
        FactRow(
            name="row entropy",
            value=NOTHING if cell.row_entropy is None else f"{cell.row_entropy:.2f} nat",
            tooltip=_ENTROPY,
        ),
    )
    return FactSection(title="Cell", rows=rows)


def _head(attention: AttentionSpec, layer: int, head: int) -> FactSection:
    rows = [
        FactRow(name="mask", value=attention.mask.label),
        FactRow(name="scale", value=f"{attention.scale:.4g}", tooltip="Multiplies query times key."),
        FactRow(name="head size", value=str(attention.head_size)),
        FactRow(name="positions", value=_positions(attention)),
        FactRow(name="normaliser", value=attention.normalizer),
    ]
    group = attention.n_heads // attention.n_key_heads
    if group > 1:
        first = head // group * group
        shared = f"{first} to {first + group - 1}"
        rows.append(FactRow(name="key head", value=f"{head // group}, shared by heads {shared}"))
    if attention.soft_cap is not None:
        rows.append(FactRow(name="soft cap", value=f"{attention.soft_cap:g}"))
    if attention.sinks:
        rows.append(FactRow(name="sink", value="learned: rows sum to less than 1"))
    if attention.query_key_norm is not None:
        rows.append(FactRow(name="query, key norm", value=attention.query_key_norm.norm.kind))
    return FactSection(title=f"Layer {layer} head {head}", rows=tuple(rows))


def _similarity(value: float) -> FactSection:
    row = FactRow(name="similarity", value=f"{value:.3f}", tooltip=_SIMILARITY)
    return FactSection(title="Text and picture", rows=(row,))


def _positions(attention: AttentionSpec) -> str:
    match attention.position:
        case RotaryPositions() as rotary:
            return f"rotary, {rotary.n_rotated} of {attention.head_size} dimensions"
        case AlibiPositions():
            return "ALiBi, a penalty for distance"
        case BucketedPositions() as buckets:
            return f"{buckets.n_buckets} distance buckets"
        case GridPositions(grid=(rows, columns)):
            return f"a bias for each step between {rows} x {columns} patches"
        case DisentangledPositions() as disentangled:
            return f"disentangled, distances up to {disentangled.max_distance or disentangled.span}"
        case None:
            return "none in the scores"
