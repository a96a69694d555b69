"""The cell and the head that are looked at, as facts."""

from __future__ import annotations

from core_model.config import AlibiPositions, AttentionSpec, BucketedPositions, DisentangledPositions, RotaryPositions
from core_model.results import CellFacts
from explorer.state.answers import InspectorAnswer
from explorer.state.app_state import AppState
from explorer.viewmodels.facts import FactRow, FactSection, FactSheet


def inspector_sheet(answer: InspectorAnswer, state: AppState) -> FactSheet:
    """Facts of the cell, when there is one, then of its head."""
    sections: list[FactSection] = []
    if answer.cell:
        sections.append(_cell(answer.cell, answer.query_text, answer.key_text))
    sections.append(_head(answer.attention, answer.layer, answer.head))
    return FactSheet(sections=tuple(sections))


def _cell(cell: CellFacts, query_text: str, key_text: str) -> FactSection:
    masked = "masked: the query may not look here"
    rows = [
        FactRow(name=f"query {cell.query}", value=query_text, role="query", is_token=True),
        FactRow(name=f"key {cell.key}", value=key_text, role="key", is_token=True),
        FactRow(name="weight", value=masked if cell.masked else f"{cell.weight:.4f}"),
    ]
    if not cell.masked:
        rows.append(FactRow(name="rank", value=f"{cell.rank} in its row"))
        if cell.score is not None:
            rows.append(
                FactRow(name="score", value=f"{cell.score:.3f}", tooltip="Before the normaliser, scale included.")
            )
    rows.append(FactRow(name="row entropy", value=f"{cell.row_entropy:.2f} nat", tooltip="0: one key gets all."))
    return FactSection(title="Cell", rows=tuple(rows))


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


def _positions(attention: AttentionSpec) -> str:
    match attention.position:
        case RotaryPositions() as rotary:
            return f"rotary, {rotary.n_rotated} of {attention.head_size} dimensions"
        case AlibiPositions():
            return "ALiBi, a penalty for distance"
        case BucketedPositions() as buckets:
            return f"{buckets.n_buckets} distance buckets"
        case DisentangledPositions() as disentangled:
            return f"disentangled, distances up to {disentangled.max_distance or disentangled.span}"
        case None:
            return "none in the scores"
