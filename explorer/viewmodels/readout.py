"""What a picture says about one cell, for the card beside the mouse."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.viewmodels.records import HeatmapPicture
from explorer.viewmodels.sizes import weight_text


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
    """The cell's exact weight, or the maximum of the block it lies in; None outside the picture."""
    place = picture.index_of(query, key)
    if place is None or picture.weights is None:
        return None
    weight, rank = weight_text(float(picture.weights[place])), ""
    is_exact = picture.weights.shape == (
        picture.rows[1] - picture.rows[0],
        picture.cols[1] - picture.cols[0],
    )
    if picture.masked is not None and picture.masked[place]:
        weight = "masked"
    elif not is_exact:
        weight = f"at most {weight}"
    elif picture.cols == (0, picture.shape[1]):
        row = picture.weights[place[0]]
        visible = row if picture.masked is None else row[~picture.masked[place[0]]]
        rank = f"rank {1 + int(np.count_nonzero(visible > picture.weights[place]))} of {len(visible)}"
    return Readout(
        query=query,
        key=key,
        query_text=picture.row_labels[query] if picture.row_labels else "",
        key_text=picture.col_labels[key] if picture.col_labels else "",
        weight=weight,
        rank=rank,
    )
