"""The singular values of a matrix of any length: the square roots of the eigenvalues of its smaller Gram matrix.

With M [R, C], C <= R: s_i^2 are the eigenvalues of M^T M (Golub and Van Loan, Matrix Computations, 8.6), which is
summed over blocks of rows. In float64 a value is right to about 1e-8 of the largest one; smaller ones cannot be told
from 0.
"""

from __future__ import annotations

import numpy as np

from core_model.cancel import CancelToken, Progress
from core_model.errors import CoreError
from core_model.pieces import PiecewiseArray, as_matrix, read_block
from core_model.results import read_only

MAX_SIDE = 2048
"""The smaller side of a matrix whose singular values are computed: some seconds and 100 MB."""
_CELLS = 1 << 21
"""Numbers read at once: 16 MiB of float64."""


def singular_values(
    tensor: PiecewiseArray, *, cancel: CancelToken | None = None, progress: Progress | None = None
) -> np.ndarray:
    """All singular values [min(R, C)] in float64, the largest first.

    CoreError when both sides are longer than MAX_SIDE, or when a number is not finite. Raises Cancelled between blocks.
    """
    n_rows, n_cols = as_matrix(tensor.shape)
    n_small, n_long = sorted((n_rows, n_cols))
    if n_small > MAX_SIDE:
        raise CoreError(
            f"Singular values of {n_rows} x {n_cols} are not computed: the smaller side may be at most {MAX_SIDE}"
        )
    gram = np.zeros((n_small, n_small))
    step = max(1, _CELLS // max(n_small, 1))
    for first in range(0, n_long, step):
        if cancel is not None:
            cancel.check()
        part = slice(first, min(first + step, n_long))
        is_tall = n_cols == n_small
        block = read_block(tensor, part, slice(0, n_cols)) if is_tall else read_block(tensor, slice(0, n_rows), part).T
        if not np.isfinite(block).all():
            raise CoreError("This tensor holds NaN or infinite numbers: it has no singular values")
        gram += block.T @ block
        if progress is not None:
            progress(0.9 * part.stop / n_long)
    squares = np.linalg.eigvalsh(gram)[::-1]
    return read_only(np.sqrt(np.maximum(squares, 0.0)))
