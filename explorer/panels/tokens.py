"""The tokens, patches or frames of what the model reads, in the stacks that read it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from core_model.tokenize.encoding import Encoding
from explorer.panels.panel import Panel
from explorer.state.app_state import AppState, Cell
from explorer.state.moves import hover_cell, lock_cell
from explorer.state.queries import tokens_query
from explorer.theme.fonts import caption_font
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_1, SPACE_2, SPACE_3
from explorer.viewmodels.token_names import token_names
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.token_strip import TokenStrip


class TokensPanel(Panel):
    """One strip for the queries, and one for the keys where these are other tokens, with the cell in focus marked.

    The tokens of what was read before stay while the new ones are awaited, and no longer.
    """

    def __init__(self, themes: ThemeManager) -> None:
        super().__init__()
        self._state = AppState()
        self._shown: tuple[Encoding | None, Encoding | None] = (None, None)
        self._names = QLabel(self.tr("queries")), QLabel(self.tr("keys"))
        self._queries = TokenStrip(themes, self, wraps=False)
        self._keys = TokenStrip(themes, self, wraps=False)
        layout = QGridLayout(self)
        layout.setContentsMargins(SPACE_3, SPACE_1, SPACE_3, SPACE_2)
        layout.setHorizontalSpacing(SPACE_3)
        layout.setVerticalSpacing(SPACE_1)
        layout.setColumnStretch(1, 1)
        for row, (name, strip) in enumerate(zip(self._names, (self._queries, self._keys), strict=True)):
            name.setFont(caption_font())
            name.setContentsMargins(0, SPACE_1, 0, 0)  # level with the tokens
            layout.addWidget(name, row, 0, Qt.AlignmentFlag.AlignTop)
            layout.addWidget(strip, row, 1)
            strip.hover_left.connect(self._on_strip_hover_left)
        self._hint = QLabel(self.tr("What the model reads, piece by piece."))
        self._hint.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        layout.addWidget(self._hint, 0, 1, Qt.AlignmentFlag.AlignTop)
        self._notes = ElidedLabel(role=QPalette.ColorRole.PlaceholderText)
        self._notes.setFont(caption_font())
        self._show_strips(is_one=True)
        self._queries.token_hovered.connect(self._on_queries_token_hovered)
        self._queries.token_clicked.connect(self._on_queries_token_clicked)
        self._keys.token_hovered.connect(self._on_keys_token_hovered)
        self._keys.token_clicked.connect(self._on_keys_token_clicked)

    def controls(self) -> Sequence[QWidget]:
        """What was done to a picture or a sound to get these patches or frames."""
        return (self._notes,)

    def show_state(self, state: AppState) -> None:
        self._state = state
        self._notes.set_text(" · ".join(state.current_tokens.notes if state.current_tokens else ()))
        tokens, site = state.current_tokens, state.selection.site
        if tokens is not None and site is not None and tokens.has(site):
            self._show_tokens(tokens.queries(site), tokens.keys(site))
        elif tokens is not None or state.tokens is None or tokens_query(state) is None:
            self._show_tokens(None, None)
        self._mark(state)

    def _show_tokens(self, queries: Encoding | None, keys: Encoding | None) -> None:
        if self._shown == (queries, keys):
            return
        self._shown = queries, keys
        self._queries.set_tokens(token_names(queries) if queries else ())
        self._keys.set_tokens(token_names(keys) if keys else ())
        self._hint.setVisible(queries is None)
        self._show_strips(is_one=keys is queries)

    def _mark(self, state: AppState) -> None:
        cell = state.focus
        query, key = (cell.query, cell.key) if cell else (None, None)
        if self._is_one_strip:
            self._queries.set_marked(query=query, key=key)
        else:
            self._queries.set_marked(query=query)
            self._keys.set_marked(key=key)

    def _show_strips(self, *, is_one: bool) -> None:
        for widget in (*self._names, self._keys):
            widget.setVisible(not is_one)
        self.setMaximumHeight(self.minimumSizeHint().height())  # the strips scroll: more room would stay empty

    @property
    def _is_one_strip(self) -> bool:
        return self._keys.isHidden()

    def _cell(self, *, query: int | None = None, key: int | None = None) -> Cell:
        """The cell of a token that is pointed at: with itself in one strip, else with the other token in focus."""
        focus = self._state.focus or Cell(query=0, key=0)
        if query is not None:
            return Cell(query=query, key=query if self._is_one_strip else focus.key)
        return Cell(query=focus.query, key=key or 0)

    @Slot(int)
    def _on_queries_token_hovered(self, index: int) -> None:
        self.noticed.emit(hover_cell(self._cell(query=index)))

    @Slot(int)
    def _on_queries_token_clicked(self, index: int) -> None:
        self.intended.emit(lock_cell(self._cell(query=index)))

    @Slot(int)
    def _on_keys_token_hovered(self, index: int) -> None:
        self.noticed.emit(hover_cell(self._cell(key=index)))

    @Slot(int)
    def _on_keys_token_clicked(self, index: int) -> None:
        self.intended.emit(lock_cell(self._cell(key=index)))

    @Slot()
    def _on_strip_hover_left(self) -> None:
        self.noticed.emit(hover_cell(None))
