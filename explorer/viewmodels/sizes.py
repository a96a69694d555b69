"""Numbers as people say them, and names no longer than there is room for."""

from __future__ import annotations

import math
from typing import Final

NOTHING: Final = "\u2013"
"""In the place of a number that there is not."""
THIN_SPACE: Final = "\u2009"
"""Between groups of three digits."""


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


def number_text(value: float) -> str:
    """A measured number to four digits: 0.02736, 2.069, 65 536, 1.5e-6; a dash where there is none."""
    if not math.isfinite(value):
        return NOTHING
    return grouped(f"{value:.0f}") if 1e4 <= abs(value) < 1e9 else power_text(f"{value:.4g}")


def weight_text(weight: float) -> str:
    """An attention weight to four decimals: 0.8312; of a smaller one two digits, 3.2e-5, for small is not zero."""
    return power_text(f"{weight:.2g}") if abs(weight) < 1e-4 else f"{weight:.4f}"


def grouped(number: str) -> str:
    """ "65536.5" as "65 536.5"; up to four digits stay together."""
    whole, point, decimals = number.partition(".")
    return number if len(whole.lstrip("-")) < 5 else f"{int(whole):,}".replace(",", THIN_SPACE) + point + decimals


def power_text(number: str) -> str:
    """ "1e+06" as "1e6"."""
    mantissa, _, exponent = number.partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def shortened(name: str, longest: int = 48) -> str:
    """The name with its middle left out where it has more characters: names differ at their ends."""
    kept = longest - 1
    return name if len(name) <= longest else f"{name[: kept - kept // 2]}…{name[-(kept // 2) :]}"
