"""Hatching and dots over cells that have no number: plain lines and points, no clipping, which some viewers ignore."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PITCH = 2.6
"""Points between neighbouring lines or dots."""


def hatch_lines(cells: NDArray[np.bool_], width: float, height: float, n: tuple[float, float]) -> NDArray[np.float64]:
    """[n, 2, 2] ends (x, y) of diagonals over the true cells [r, c] of a matrix of that size, from its top left.

    `n` cells fill the height and the width: less than there are where of the last one there is a part.
    """
    n_rows, n_cols = n
    x_edges, y_edges = width * _edges(cells.shape[1], n_cols), height * _edges(cells.shape[0], n_rows)
    lines = [np.empty((0, 2, 2))]
    for offset in np.arange(PITCH / 2, width + height, PITCH * np.sqrt(2)):  # the line x + y = offset
        cuts = np.unique(np.concatenate([x_edges, offset - y_edges]))
        cuts = cuts[(cuts >= max(0.0, offset - height)) & (cuts <= min(width, offset))]
        middles = (cuts[:-1] + cuts[1:]) / 2
        rows = np.clip(((offset - middles) / height * n_rows).astype(int), 0, cells.shape[0] - 1)
        cols = np.clip((middles / width * n_cols).astype(int), 0, cells.shape[1] - 1)
        inside = np.diff(cells[rows, cols].astype(np.int8), prepend=0, append=0)
        x = np.stack([cuts[inside > 0], cuts[inside < 0]], axis=1)
        lines.append(np.stack([x, offset - x], axis=2))
    return np.concatenate(lines)


def dots(cells: NDArray[np.bool_], width: float, height: float, n: tuple[float, float]) -> NDArray[np.float64]:
    """[n, 2] places (x, y) of dots in the true cells [r, c] of a matrix as in `hatch_lines`."""
    n_rows, n_cols = n
    x, y = np.meshgrid(np.arange(PITCH / 2, width, PITCH), np.arange(PITCH / 2, height, PITCH))
    inside = cells[(y / height * n_rows).astype(int), (x / width * n_cols).astype(int)]
    return np.stack([x[inside], y[inside]], axis=1)


def _edges(n_cells: int, n: float) -> NDArray[np.float64]:
    """Where cells begin and end, from 0 to 1, of which `n` fill that."""
    return np.minimum(np.arange(n_cells + 1) / n, 1.0)
