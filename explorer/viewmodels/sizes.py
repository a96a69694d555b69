"""Numbers as people say them."""

from __future__ import annotations


def count_text(n: int) -> str:
    """A count to three digits: 843, 12.3 thousand, 124 million."""
    for size, word in ((1_000_000_000, "billion"), (1_000_000, "million"), (1_000, "thousand")):
        if n >= size:
            return f"{n / size:.3g} {word}"
    return str(n)


def bytes_text(n: int) -> str:
    """Bytes in units of 1024 to three digits: 512 B, 1.5 MiB."""
    amount, unit = float(n), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1000 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.3g} {unit}"
