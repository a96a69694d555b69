"""A small attention picture and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from explorer.figures.spec import FigureOptions, FigureSpec, Provenance
from explorer.viewmodels.records import HeatmapPicture

MakeSpec = Callable[..., FigureSpec]


def _causal_weights(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Random rows [n, n] that sum to 1 up to the diagonal, and the mask above it."""
    masked = np.triu(np.ones((n, n), dtype=bool), 1)
    scores = np.where(masked, -np.inf, np.random.default_rng(0).normal(size=(n, n)))
    weights = np.exp(scores)
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32), masked


@pytest.fixture
def causal_weights() -> Callable[[int], tuple[np.ndarray, np.ndarray]]:
    return _causal_weights


@pytest.fixture
def provenance() -> Provenance:
    return Provenance(
        model="tiny-lm",
        family="GPT-2",
        site="decoder.self",
        layer=1,
        head=2,
        dtype="F32",
        header_sha256="0123456789abcdef",
        text="the cat sat",
    )


@pytest.fixture
def make_spec(provenance: Provenance) -> MakeSpec:
    """A figure of given values, tokens and options; values default to causal attention over the tokens."""

    def make(
        tokens: Sequence[str] = ("the", " cat", " sat"),
        *,
        values: np.ndarray | None = None,
        options: FigureOptions | None = None,
        **changes: object,
    ) -> FigureSpec:
        if values is None:
            values, changes["masked"] = _causal_weights(len(tokens))
            changes |= {"row_labels": tuple(tokens), "col_labels": tuple(tokens)}
        fields = {
            "values": values.astype(np.float32),
            "shape": values.shape,
            "rows": (0, values.shape[0]),
            "cols": (0, values.shape[1]),
            "levels": (0.0, 1.0),
            "title": "Attention weights, layer 1 head 2",
            "scale_name": "attention weight, linear",
        }
        picture = HeatmapPicture(**(fields | changes))  # pyright: ignore[reportArgumentType]
        return FigureSpec(picture=picture, provenance=provenance, options=options or FigureOptions())

    return make
