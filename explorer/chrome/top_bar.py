"""The bar on top: what is open, and what it reads."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QPalette, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from explorer.chrome.file_field import FileField
from explorer.chrome.text_field import TextField
from explorer.state.app_state import AppState, OpenedModel
from explorer.state.given_file import FileKind
from explorer.state.moves import give_file, set_inputs
from explorer.theme.fonts import caption_font, heading_font
from explorer.theme.icons import icon
from explorer.theme.manager import ThemeManager
from explorer.theme.metrics import SPACE_3
from explorer.viewmodels.model_card import health, short_summary
from explorer.widgets.elided_label import ElidedLabel

_LONGEST_NAME = 240
"""Pixels of the model's name before it is cut: the text needs the room."""
_LEAST_NAME, _LEAST_TEXT = 64, 128
"""Pixels that the name and each text keep however small the window: with these all else fits into one of 800."""
_ROOM_FOR_SUMMARY = 960
"""Pixels of a bar with room for the model's sizes; in a narrower one hardly a word of them would be left."""
_TYPING_MS = 250
"""Rest after the last key before a text is read."""


class TopBar(QWidget):
    """Open on the left, the model's name and health, what it reads, export and the layouts on the right."""

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
        self._model.setMinimumWidth(_LEAST_NAME)
        self._model.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._model.clicked.connect(self._on_model_clicked)
        self._summary = ElidedLabel(parent=self, role=QPalette.ColorRole.PlaceholderText)
        self._summary.setFont(caption_font())
        self._files: dict[FileKind, FileField] = {
            "picture": FileField("picture", self),
            "sound": FileField("sound", self),
        }
        for field in self._files.values():
            field.asked.connect(self._on_file_asked)
            field.cleared.connect(self._on_file_cleared)
        self._text, self._second = TextField(self), TextField(self)
        for field in (self._text, self._second):
            field.setMinimumWidth(_LEAST_TEXT)
            field.edited.connect(self._typing.start)
            field.finished.connect(self._on_typing_timeout)
        self._layout = QHBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(SPACE_3)
        for widget in (open_button, self._model):
            self._layout.addWidget(widget)
        self._layout.addWidget(self._summary)
        for field in self._files.values():
            self._layout.addWidget(field)
        self._layout.addWidget(self._text, 5)
        self._layout.addWidget(self._second, 3)
        self._layout.addStretch()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        themes.theme_changed.connect(self._on_themes_theme_changed)

    def add_button(self, button: QWidget) -> None:
        """Add to the right end."""
        self._layout.addWidget(button)

    def focus_text(self) -> None:
        """Where the model reads no text, go to what it does read."""
        shown = [field for field in (self._text, self._second) if not field.isHidden()]
        if shown:
            shown[0].setFocus(Qt.FocusReason.ShortcutFocusReason)
            shown[0].selectAll()
            return
        for field in self._files.values():
            if not field.isHidden():
                field.take_focus()

    def show_state(self, state: AppState) -> None:
        self._state = state
        self._show_model(state.current_model)
        reads = state.current_model.reads if state.current_model else ()
        for kind, field in self._files.items():
            field.setVisible(kind in reads)
            field.set_file(getattr(state.inputs, kind), state.current_tokens.notes if state.current_tokens else ())
        if not self._typing.isActive():
            self._show_texts(state)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_summary()

    def _place_summary(self) -> None:
        self._summary.setVisible(self._state.current_model is not None and self.width() >= _ROOM_FOR_SUMMARY)

    def _show_texts(self, state: AppState) -> None:
        fields = _fields(state.current_model)
        for field, label, text in (
            (self._text, fields.text, state.inputs.text),
            (self._second, fields.second, state.inputs.target if fields.is_target else state.inputs.pair),
        ):
            field.setVisible(bool(label))
            field.set_text(text)
            field.setPlaceholderText(label)
            field.setToolTip(label)
        self._text.setEnabled(state.current_model is None or "text" in state.current_model.reads)

    def _show_model(self, model: OpenedModel | None) -> None:
        self._model.setVisible(model is not None)
        self._place_summary()
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

    @Slot(str)
    def _on_file_asked(self, kind: FileKind) -> None:
        self.command_requested.emit(f"open_{kind}")

    @Slot(str)
    def _on_file_cleared(self, kind: FileKind) -> None:
        self.intended.emit(give_file(kind, None))

    @Slot()
    def _on_model_clicked(self) -> None:
        self.command_requested.emit("panel_model_card")

    @Slot(object)
    def _on_themes_theme_changed(self, theme: object) -> None:
        self._show_model(self._state.current_model)


@dataclass(frozen=True, kw_only=True)
class _Fields:
    """What the two fields ask for; a field that asks for nothing is not shown."""

    text: str
    second: str = ""
    is_target: bool = False


def _fields(model: OpenedModel | None) -> _Fields:
    if model is None:
        return _Fields(text="Text that the model reads (Ctrl+L)")
    if not model.reads:
        return _Fields(text="This checkpoint reads no text" if model.info.refusal else "This model reads vectors")
    ids = "Token ids, for example 5 17 2"
    text = "" if "text" not in model.reads else "Text that the model reads (Ctrl+L)" if model.has_tokenizer else ids
    if "target" not in model.reads:
        return _Fields(text=text, second="Second text of a pair (optional)" if "pair" in model.reads else "")
    if not model.has_tokenizer:
        return _Fields(text=text, second="Token ids of the decoder", is_target=True)
    source = text and "Source text, read by the encoder"
    return _Fields(text=source, second="Target text, read by the decoder", is_target=True)
