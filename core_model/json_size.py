"""How large a JSON text may become, known before anything is made of it: `{}` takes 64 bytes for its 3."""

from __future__ import annotations

MOST_VALUES = 1_000_000
"""Ten times as many as the largest published index has; Python takes some 200 MB for them."""


def n_values(text: bytes) -> int:
    """No fewer than the values in a JSON text: each but the first follows one of three marks, which texts may hold."""
    return 1 + sum(text.count(mark) for mark in (b",", b"[", b"{"))
