"""What a picture says about one cell, for the card beside the mouse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core_model.results import rank_among
from explorer.viewmodels.records import HeatmapPicture
from explorer.viewmodels.sizes import NOTHING, weight_text

_POOLED: Final = {"max": "at most {}", "mean": "mean {}", "sample": "sampled: {}"}
"""What is said of the cells that share a value."""


@dataclass(frozen=True, kw_only=True)
class Readout:
    """One cell in words. `rank` is among the keys that the query may look at; empty where the picture does not hold the
    whole row cell by cell."""

    query: int
    key: int
    query_text: str
    key_text: str
    weight: str
    rank: str


def readout(picture: HeatmapPicture, query: int, key: int) -> Readout | None:
    """The cell's exact weight, or what is known of the block it lies in; None outside the picture."""
    place = picture.index_of(query, key)
    if place is None or picture.weights is None:
        return None
    weight, rank = weight_text(float(picture.weights[place])), ""
    is_masked = picture.masked is not None and bool(picture.masked[place])
    if is_masked:
        weight = "masked"
    if not picture.is_exact and (picture.reduce == "sample" or not is_masked):
        weight = _POOLED[picture.reduce].format(weight)
    elif not is_masked and picture.cols == (0, picture.shape[1]):
        row = picture.weights[place[0]]
        visible = row if picture.masked is None else row[~picture.masked[place[0]]]
        among = rank_among(visible, picture.weights[place])
        rank = f"rank {NOTHING if among is None else among} of {len(visible)}"
    return Readout(
        query=query,
        key=key,
        query_text=picture.row_labels[query] if picture.row_labels else "",
        key_text=picture.col_labels[key] if picture.col_labels else "",
        weight=weight,
        rank=rank,
    )
