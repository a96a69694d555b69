"""Which keys a query may see, as a predicate of positions that any block can evaluate.

Shape letters: N queries, M keys.
"""

from __future__ import annotations

from typing import Literal

import torch

from core_model.config import MaskSpec


def sees(mask: MaskSpec, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Whether queries at these positions may see keys at those; the two broadcast. This is the one definition."""
    if mask.window is not None:
        distance = query - key
        near = distance < mask.window if mask.causal else distance.abs() <= mask.window
        seen = near | (query < mask.n_global) | (key < mask.n_global)
        seen = seen & (distance >= 0) if mask.causal else seen
    else:
        seen = query >= key if mask.causal else torch.ones_like(query == key)
    return seen | (key < mask.n_prefix) if mask.n_prefix else seen


def visible(mask: MaskSpec, query_N: torch.Tensor, key_M: torch.Tensor) -> torch.Tensor:
    """True [N, M] where the query at position query_N[i] may see the key at position key_M[j]."""
    return sees(mask, query_N[:, None], key_M[None, :])


def hides_nothing(mask: MaskSpec) -> bool:
    """Whether every query sees every key."""
    return not mask.causal and mask.window is None


def coverage(mask: MaskSpec, rows: range, cols: range) -> Literal["all", "some", "none"]:
    """Whether the queries at positions `rows` see all, some or none of the keys at positions `cols`.

    "some" may be said of a block where it is all or none; never the other way round.
    """
    if seen_by_all(mask, rows, cols) == cols:
        return "all"
    behind, ahead = _reach(mask)
    nearest_behind, nearest_ahead = rows[0] - cols[-1], cols[0] - rows[-1]
    touches_always_seen = cols[0] < max(mask.n_prefix, mask.n_global) or rows[0] < mask.n_global
    if touches_always_seen or (_within(nearest_ahead, ahead) and _within(nearest_behind, behind)):
        return "some"
    return "none"


def seen_by_all(mask: MaskSpec, rows: range, cols: range) -> range:
    """Those of the keys at positions `cols`, in one piece, that each of the queries at positions `rows` sees.

    What is seen beyond a window for being a prefix or a global token is not counted.
    """
    behind, ahead = _reach(mask)
    start = cols.start if behind is None else min(max(cols.start, rows[-1] - behind), cols.stop)
    stop = cols.stop if ahead is None else min(rows[0] + ahead + 1, cols.stop)
    return range(start, max(start, stop))


def _reach(mask: MaskSpec) -> tuple[int | None, int | None]:
    """How far a query sees behind and ahead of itself; None is without end."""
    if mask.causal:
        return None if mask.window is None else mask.window - 1, 0
    return mask.window, mask.window


def _within(distance: int, reach: int | None) -> bool:
    return reach is None or distance <= reach


def key_spans(mask: MaskSpec, first: int, last: int, n_keys: int) -> list[tuple[int, int]]:
    """The ranges of keys that queries at positions first..last (inclusive) may see, in order, without overlap.

    Everything outside them is masked for all of these queries; inside, `visible` decides.
    """
    stop = min(last + 1, n_keys) if mask.causal else n_keys
    if mask.window is None or first < mask.n_global:
        return joined([(0, max(stop, min(mask.n_prefix, n_keys)))])
    start = max(0, first - mask.window + (1 if mask.causal else 0))
    if not mask.causal:
        stop = min(n_keys, last + mask.window + 1)
    always = min(max(mask.n_global, mask.n_prefix), n_keys)
    return joined([(0, always), (start, stop)])


def joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in ascending order without the empty ones, those that overlap or meet in one."""
    found: list[tuple[int, int]] = []
    for start, stop in spans:
        if start >= stop:
            continue
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], stop))
        else:
            found.append((start, stop))
    return found
