"""The bar on top: what is open, and what it reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from explorer.chrome.text_field import TextField
from explorer.state.app_state import AppState, OpenedModel
from explorer.state.moves import set_inputs
from explorer.theme.fonts import caption_font, heading_font
from explorer.theme.icons import icon
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_3
from explorer.viewmodels.model_card import health, short_summary
from explorer.widgets.elided_label import ElidedLabel

_LONGEST_NAME = 240
"""Pixels of the model's name before it is cut: the text needs the room."""
_TYPING_MS = 250
"""Rest after the last key before a text is read."""


class TopBar(QWidget):
    """Open on the left, the model's name and health, its text and second text, export and the layouts on the right."""

    intended = Signal(object)
    command_requested = Signal(str)

    def __init__(self, themes: ThemeManager, open_button: QToolButton, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._state = AppState()
        self._typing = QTimer(self, interval=_TYPING_MS, singleShot=True)
        self._typing.timeout.connect(self._on_typing_timeout)
        self._model = QToolButton(self, autoRaise=True, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._model.setFont(heading_font())
        self._model.clicked.connect(self._on_model_clicked)
        self._summary = ElidedLabel(parent=self, role=QPalette.ColorRole.PlaceholderText)
        self._summary.setFont(caption_font())
        self._text, self._second = TextField(self), TextField(self)
        for field in (self._text, self._second):
            field.edited.connect(self._typing.start)
            field.finished.connect(self._on_typing_timeout)
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(SPACE_3)
        for widget in (open_button, self._model):
            self._layout.addWidget(widget)
        self._layout.addWidget(self._summary)
        self._layout.addWidget(self._text, 5)
        self._layout.addWidget(self._second, 3)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        themes.theme_changed.connect(self._on_themes_theme_changed)

    def add_button(self, button: QWidget) -> None:
        """Add to the right end."""
        self._layout.addWidget(button)

    def focus_text(self) -> None:
        self._text.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._text.selectAll()

    def show_state(self, state: AppState) -> None:
        self._state = state
        self._show_model(state.current_model)
        if self._typing.isActive():
            return
        fields = _fields(state.current_model)
        self._text.set_text(state.inputs.text)
        self._text.setPlaceholderText(fields.text)
        self._text.setToolTip(fields.text)
        self._text.setEnabled(state.current_model is None or state.current_model.takes_text)
        self._second.setVisible(bool(fields.second))
        self._second.set_text(state.inputs.target if fields.is_target else state.inputs.pair)
        self._second.setPlaceholderText(fields.second)
        self._second.setToolTip(fields.second)

    def _show_model(self, model: OpenedModel | None) -> None:
        self._model.setVisible(model is not None)
        self._summary.setVisible(model is not None)
        if model is None:
            return
        mark, sentence = health(model.info)
        self._model.setIcon(icon(mark, self._themes.theme[mark]))
        name = model.info.name
        self._model.setText(self._model.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, _LONGEST_NAME))
        tooltip = self.tr("{name}: {sentence} Click for the model card.")
        self._model.setToolTip(tooltip.format(name=name, sentence=sentence))
        self._summary.set_text(short_summary(model.info))
        self._summary.setToolTip(model.info.summary)

    @Slot()
    def _on_typing_timeout(self) -> None:
        self._typing.stop()
        second = "target" if _fields(self._state.current_model).is_target else "pair"
        inputs = replace(self._state.inputs, text=self._text.full_text, **{second: self._second.full_text})
        if inputs != self._state.inputs:
            self.intended.emit(set_inputs(inputs))
        else:
            self.show_state(self._state)  # what came while typing was held back

    @Slot()
    def _on_model_clicked(self) -> None:
        self.command_requested.emit("panel_model_card")

    @Slot(object)
    def _on_themes_theme_changed(self, theme: object) -> None:
        self._show_model(self._state.current_model)


@dataclass(frozen=True, kw_only=True)
class _Fields:
    """What the two fields ask for; no second field where its text is empty."""

    text: str
    second: str = ""
    is_target: bool = False


def _fields(model: OpenedModel | None) -> _Fields:
    if model is None:
        return _Fields(text="Text that the model reads (Ctrl+L)")
    if model.info.refusal is not None:
        return _Fields(text="This checkpoint reads no text")
    if not model.takes_text:
        return _Fields(text=f"This model reads {model.reads}")
    if not model.has_tokenizer:
        second = "Token ids of the decoder" if model.takes_target else ""
        return _Fields(text="Token ids, for example 5 17 2", second=second, is_target=model.takes_target)
    if model.takes_target:
        return _Fields(
            text="Source text, read by the encoder", second="Target text, read by the decoder", is_target=True
        )
    second = "Second text of a pair (optional)" if model.takes_pair else ""
    return _Fields(text="Text that the model reads (Ctrl+L)", second=second)
