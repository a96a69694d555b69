"""Where the chips of a token strip lie."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

GAP = 4.0


@dataclass(frozen=True, kw_only=True)
class TokenLayout:
    """Chips in lines: `starts[k]` is the first token of line k; `lefts` and `widths` are pixels."""

    starts: tuple[int, ...]
    lefts: tuple[float, ...]
    widths: tuple[float, ...]

    @property
    def n_lines(self) -> int:
        return len(self.starts)

    @property
    def width(self) -> float:
        """Right end of the longest line."""
        return max((left + width for left, width in zip(self.lefts, self.widths, strict=True)), default=0.0)

    def tokens_of(self, line: int) -> range:
        stop = self.starts[line + 1] if line + 1 < self.n_lines else len(self.lefts)
        return range(self.starts[line], stop)

    def tokens_between(self, line: int, left: float, right: float) -> range:
        """The tokens of a line that can be seen from x `left` to `right`."""
        tokens = self.tokens_of(line)
        start = bisect_right(self.lefts, left, tokens.start, tokens.stop) - 1
        return range(max(tokens.start, start), bisect_right(self.lefts, right, tokens.start, tokens.stop))

    def line_of(self, index: int) -> int:
        return bisect_right(self.starts, index) - 1

    def token_at(self, line: int, x: float) -> int | None:
        """The token of a line that covers x, half the gaps around it included."""
        if not 0 <= line < self.n_lines:
            return None
        tokens = self.tokens_of(line)
        index = bisect_right(self.lefts, x + GAP / 2, tokens.start, tokens.stop) - 1
        if index < tokens.start or x > self.lefts[index] + self.widths[index] + GAP / 2:
            return None
        return index


def lay_out(widths: Sequence[float], room: float | None, breaks_after: Sequence[bool]) -> TokenLayout:
    """Place chips from left to right; a line ends where `room` does (None: never) and after a token that breaks."""
    starts: list[int] = []
    lefts: list[float] = []
    x = 0.0
    is_new_line = True
    for index, width in enumerate(widths):
        if is_new_line or (room is not None and x > 0.0 and x + width > room):
            starts.append(index)
            x = 0.0
        lefts.append(x)
        x += width + GAP
        is_new_line = room is not None and breaks_after[index]
    return TokenLayout(starts=tuple(starts), lefts=tuple(lefts), widths=tuple(widths))
