"""Round numbers for axes and colour bars."""

import itertools
import math
from collections.abc import Sequence

from explorer.viewmodels.sizes import grouped, power_text

_ROUND = (1.0, 2.0, 5.0, 10.0)


def nice_step(span: float, max_count: int) -> float:
    """Smallest of 1, 2, 5 times a power of ten that divides `span` into at most `max_count` parts."""
    raw = span / max(1, max_count)
    power = 10.0 ** math.floor(math.log10(raw))
    return next(factor for factor in _ROUND if factor * power >= raw * (1 - 1e-9)) * power


def nice_ticks(low: float, high: float, max_count: int) -> list[float]:
    """Round values from `low` to `high`, both included when they are round. Empty when there is no span."""
    if not high > low:
        return []
    step = nice_step(high - low, max_count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def index_step(pixels_per_index: float, min_pixels: float) -> int:
    """Smallest of 1, 2, 5, 10, 20 ... indices that are at least `min_pixels` apart on screen."""
    return max(1, round(nice_step(min_pixels / pixels_per_index, 1)))


def format_ticks(values: Sequence[float]) -> list[str]:
    """Plain numbers with the same count of decimals, thousands apart; powers of ten below 0.001 and from 100 000 on."""
    if not values:
        return []
    largest = max(abs(value) for value in values)
    if largest != 0.0 and not 1e-3 <= largest < 1e5:
        return [power_text(f"{value:.3g}") for value in values]
    gaps = [abs(b - a) for a, b in itertools.pairwise(values)]
    tolerance = 1e-3 * min((gap for gap in gaps if gap > 0.0), default=largest or 1.0)
    decimals = next(n for n in range(20) if all(abs(round(value, n) - value) <= tolerance for value in values))
    return [grouped(f"{value:.{decimals}f}") for value in values]
