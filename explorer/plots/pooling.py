"""A picture with more cells than there are pixels: none is skipped, each pixel shows the strongest of its cells."""

from dataclasses import replace

import numpy as np

from explorer.viewmodels.records import BoolArray, FloatArray, HeatmapPicture


def pooled_picture(picture: HeatmapPicture, down: int, across: int) -> HeatmapPicture:
    """The picture with one value for each block of down x across: the largest, or of signed values the farthest from 0.

    A block is masked or missing where all of its cells are.
    """
    hidden = np.isnan(picture.values)
    for cells in (picture.masked, picture.missing):
        hidden = hidden if cells is None else hidden | cells
    rank = np.abs(picture.values) if picture.colormap == "diverging" else picture.values
    rank = np.where(hidden, -np.inf, rank)
    blocks = _blocks(rank, down, across, -np.inf)
    best = blocks.argmax(axis=-1)[..., None]
    values = np.take_along_axis(_blocks(picture.values, down, across, np.nan), best, axis=-1)[..., 0]
    return replace(
        picture,
        values=values,
        cells=(picture.cells[0] * down, picture.cells[1] * across),
        masked=_all(picture.masked, down, across),
        missing=_all(picture.missing, down, across),
        weights=None,
        given=None,
        received=None,
    )


def pooled_tiles(tiles: FloatArray, down: int, across: int) -> FloatArray:
    """Tiles [..., y, x] with the largest of each block of down x across; NaN where all of a block is."""
    padding = [*[(0, 0)] * (tiles.ndim - 2), (0, -tiles.shape[-2] % down), (0, -tiles.shape[-1] % across)]
    whole = np.pad(tiles, padding, constant_values=np.nan)
    n_rows, n_cols = whole.shape[-2] // down, whole.shape[-1] // across
    return np.fmax.reduce(whole.reshape(*whole.shape[:-2], n_rows, down, n_cols, across), axis=(-3, -1))


def _all(cells: BoolArray | None, down: int, across: int) -> BoolArray | None:
    return None if cells is None else np.asarray(_blocks(cells, down, across, True).min(axis=-1))


def _blocks(cells: FloatArray | BoolArray, down: int, across: int, fill: float | bool):
    """[R, C, down * across]: the cells of each block; the last blocks are filled up."""
    n_rows, n_cols = cells.shape
    whole = np.pad(cells, ((0, -n_rows % down), (0, -n_cols % across)), constant_values=fill)
    split = whole.reshape(whole.shape[0] // down, down, whole.shape[1] // across, across)
    return split.swapaxes(1, 2).reshape(split.shape[0], split.shape[2], down * across)
