"""Facts in sections: names to the left, values to the right, each saying how sure it is."""

from html import escape

from PySide6.QtCore import QEvent, QSize, Qt, Slot
from PySide6.QtGui import QFontMetrics, QHelpEvent, QResizeEvent, QTextOption
from PySide6.QtWidgets import QTextEdit, QToolTip, QWidget

from explorer.theme.colors import Theme
from explorer.theme.fonts import body_font, token_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_1, SPACE_2, SPACE_3, SPACE_4
from explorer.theme.token_text import token_text
from explorer.viewmodels.facts import FactRow, FactSheet

_LEAST_WIDTH = 208
_WIDEST_NAME = 0.42
"""Share of the sheet that names take before they wrap."""
_VALUE_ROLES = {
    "": "text",
    "inferred": "text",
    "unknown": "text_muted",
    "ok": "ok",
    "warning": "warning",
    "error": "error",
}


class FactSheetView(QTextEdit):
    """A FactSheet as one text that can be selected and copied; it may change as fast as the mouse moves."""

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._sheet = FactSheet(sections=())
        self._html = ""
        self.setReadOnly(True)
        self.setFont(body_font())
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(SPACE_3)
        themes.theme_changed.connect(self._on_themes_theme_changed)

    def set_sheet(self, sheet: FactSheet) -> None:
        """Show facts; the scroll position stays."""
        self._sheet = sheet
        html = sheet_html(sheet, self._themes.theme, round(_WIDEST_NAME * self.width()))
        if html == self._html:
            return
        self._html = html
        place = self.verticalScrollBar().value()
        self.setHtml(html)
        self.verticalScrollBar().setValue(place)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.set_sheet(self._sheet)

    def minimumSizeHint(self) -> QSize:
        return QSize(_LEAST_WIDTH, 64)

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.anchorAt(event.pos()), self)
            return True
        return super().viewportEvent(event)

    @Slot(object)
    def _on_themes_theme_changed(self, theme: Theme) -> None:
        self.set_sheet(self._sheet)


def sheet_html(sheet: FactSheet, theme: Theme, widest_name: int) -> str:
    """Each section a title and a table; the values of all of them begin below each other.

    Names wider than `widest_name` pixels wrap.
    """
    metrics = QFontMetrics(body_font())
    widths = [metrics.horizontalAdvance(row.name) for section in sheet.sections for row in section.rows]
    name_width = min(widest_name, max(widths, default=0)) + SPACE_2
    parts: list[str] = []
    for number, section in enumerate(sheet.sections):
        top = SPACE_4 if number else 0
        parts.append(f'<p style="margin: {top}px 0 0 0"><b>{escape(section.title)}</b></p>')
        rows = "".join(_row_html(row, theme, name_width) for row in section.rows)
        parts.append(f'<table cellspacing="0" cellpadding="0">{rows}</table>')
    return "".join(parts)


def _row_html(row: FactRow, theme: Theme, name_width: int) -> str:
    color = theme[row.role or _VALUE_ROLES[row.mark]]
    font = f"font-family: '{token_font().family()}';" if row.is_token else ""
    value = escape(token_text(row.value) if row.is_token else row.value)
    if row.mark == "inferred":
        value += f' <span style="color: {theme.text_muted}">(inferred)</span>'
    height = max(QFontMetrics(body_font()).height(), QFontMetrics(token_font()).height())
    # As high for tokens as for what stands for them until there is one.
    line = f"padding-top: {SPACE_1}px; line-height: {height}px;"
    cell = f'style="color: {color}; {line} {font}"'
    if not row.name:
        return f'<tr><td colspan="2" {cell}>{value}</td></tr>'
    name = escape(row.name)
    if row.tooltip:
        link = f"color: {theme.text_muted}; text-decoration: none"
        name = f'<a href="{escape(row.tooltip)}" style="{link}">{name}</a>'
    gap = f"color: {theme.text_muted}; {line} padding-right: {SPACE_2}px"
    return f'<tr><td width="{name_width}" style="{gap}">{name}</td><td {cell}>{value}</td></tr>'
