"""Facts in sections: names to the left, values to the right, each saying how sure it is."""

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from explorer.theme.fonts import body_font, caption_font, heading_font, token_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_1, SPACE_2, SPACE_3, SPACE_4
from explorer.theme.token_text import token_text
from explorer.viewmodels.facts import FactRow, FactSection, FactSheet

_MARK_ROLES = {
    "": "text",
    "inferred": "text",
    "unknown": "text_muted",
    "ok": "ok",
    "warning": "warning",
    "error": "error",
}
_MARK_WORDS = {"inferred": "inferred", "unknown": "unknown"}


class FactSheetView(QScrollArea):
    """Shows a FactSheet; a sheet of the same build only changes its texts, so that it can follow the mouse."""

    def __init__(self, themes: ThemeManager, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._sheet = FactSheet(sections=())
        self._rows: list[_Row] = []
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        themes.theme_changed.connect(self._on_themes_theme_changed)

    def set_sheet(self, sheet: FactSheet) -> None:
        facts = [row for section in sheet.sections for row in section.rows]
        if _build(sheet) != _build(self._sheet) or not self._rows:
            self._rebuild(sheet)
        for row, fact in zip(self._rows, facts, strict=True):
            row.show(fact, self._themes)
        self._sheet = sheet

    def _rebuild(self, sheet: FactSheet) -> None:
        self._rows = []
        body = QWidget()
        layout = QVBoxLayout(body)
        layout.setContentsMargins(SPACE_3, SPACE_2, SPACE_3, SPACE_3)
        layout.setSpacing(SPACE_4)
        for section in sheet.sections:
            layout.addLayout(self._section(section, body))
        layout.addStretch(1)
        body.setAutoFillBackground(False)
        self.setWidget(body)

    def _section(self, section: FactSection, parent: QWidget) -> QGridLayout:
        grid = QGridLayout()
        grid.setHorizontalSpacing(SPACE_3)
        grid.setVerticalSpacing(SPACE_1)
        grid.setColumnStretch(1, 1)
        title = QLabel(section.title, parent)
        title.setFont(heading_font())
        title.setWordWrap(True)
        grid.addWidget(title, 0, 0, 1, 2)
        for number, fact in enumerate(section.rows, start=1):
            row = _Row(fact, parent)
            if fact.name:
                grid.addWidget(row.name, number, 0, Qt.AlignmentFlag.AlignTop)
                grid.addWidget(row.value, number, 1)
            else:
                row.name.hide()
                grid.addWidget(row.value, number, 0, 1, 2)
            self._rows.append(row)
        return grid

    @Slot(object)
    def _on_themes_theme_changed(self, theme: object) -> None:
        self.set_sheet(self._sheet)


class _Row:
    """The two labels of one fact."""

    def __init__(self, fact: FactRow, parent: QWidget) -> None:
        self.name = QLabel(parent)
        self.name.setFont(caption_font())
        self.value = QLabel(parent)
        self.value.setFont(token_font() if fact.is_token else body_font())
        self.value.setWordWrap(True)
        self.value.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)

    def show(self, fact: FactRow, themes: ThemeManager) -> None:
        theme = themes.theme
        self.name.setText(fact.name)
        text = token_text(fact.value) if fact.is_token else fact.value
        word = _MARK_WORDS.get(fact.mark, "")
        self.value.setText(f"{text} ({word})" if word and text != word else text)
        for label, role in ((self.name, "text_muted"), (self.value, fact.role or _MARK_ROLES[fact.mark])):
            palette = label.palette()
            palette.setColor(QPalette.ColorRole.WindowText, theme[role])
            label.setPalette(palette)
            label.setToolTip(fact.tooltip)


def _build(sheet: FactSheet) -> tuple[tuple[str, tuple[tuple[bool, bool], ...]], ...]:
    """What decides which labels there are; all else is text."""
    return tuple(
        (section.title, tuple((bool(row.name), row.is_token) for row in section.rows)) for section in sheet.sections
    )
