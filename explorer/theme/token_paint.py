"""Paints a token's text, its signs for space and newline dimmed."""

from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QFontMetricsF, QPainter

from explorer.theme.token_text import token_runs


def token_width(metrics: QFontMetricsF, token: str, limit: int | None = None) -> float:
    """Pixels that `draw_token` needs: run by run, for a right-to-left text is narrower than its parts."""
    return sum(metrics.horizontalAdvance(text) for text, _ in token_runs(token, limit))


def draw_token(
    painter: QPainter, baseline: QPointF, token: str, color: QColor, dimmed: QColor, limit: int | None = None
) -> None:
    """Draw from the left end of the baseline, in the painter's font."""
    metrics = QFontMetricsF(painter.font())
    x = baseline.x()
    for text, is_sign in token_runs(token, limit):
        painter.setPen(dimmed if is_sign else color)
        painter.drawText(QPointF(x, baseline.y()), text)
        x += metrics.horizontalAdvance(text)
