"""The choices of the export, one row each."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QCheckBox, QDoubleSpinBox, QVBoxLayout, QWidget

from explorer.figures.export import FORMAT_LABELS, WIDTH_PRESETS, ExportSource
from explorer.figures.files import DATA_FORMATS
from explorer.figures.spec import FONT_SIZES, RESOLUTIONS, WIDTHS_MM
from explorer.state.export import ExportChoices
from explorer.theme.metrics import SPACE_1
from explorer.viewmodels.colormap_labels import COLORMAP_LABELS
from explorer.widgets.editors import ChoiceEditor, CountEditor
from explorer.widgets.field_row import FieldRow

_WIDTH = 340
_AS_ON_SCREEN, _OTHER_WIDTH = "", ""


class ExportForm(QWidget):
    """Shows ExportChoices; tells which of their fields the person changed. It keeps none of them."""

    changed = Signal(object)
    """{field of ExportChoices: value}"""

    def __init__(self, source: ExportSource, choices: ExportChoices, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._source = source
        self.setFixedWidth(_WIDTH)
        self._part = ChoiceEditor(
            [("whole", self.tr("Whole matrix")), ("part", self.tr("Part on screen"))], parent=self
        )
        self._part.setEnabled(not source.on_screen.is_whole)
        titles = [(name, title) for name, (title, _) in FORMAT_LABELS.items()]
        self._format = ChoiceEditor(titles, {name: text for name, (_, text) in FORMAT_LABELS.items()}, parent=self)
        self._preset = ChoiceEditor(
            [
                *((f"{width:g}", f"{name}, {width:g} mm") for name, width in WIDTH_PRESETS),
                (_OTHER_WIDTH, self.tr("Other")),
            ],
            parent=self,
        )
        self._width = _spin(WIDTHS_MM, " mm", self)
        self._dpi = CountEditor(self)
        self._dpi.setRange(*RESOLUTIONS)
        self._dpi.setSuffix(" dpi")
        self._font_size = _spin(FONT_SIZES, " pt", self)
        self._colormap = ChoiceEditor([(_AS_ON_SCREEN, self.tr("As on screen")), *COLORMAP_LABELS.items()], parent=self)
        self._labels = QCheckBox(self.tr("Tokens"), self)
        self._caption = QCheckBox(self.tr("Model, head, scale, text"), self)
        self._arrange()
        self._connect()
        self.show_choices(choices)

    def _arrange(self) -> None:
        tr = self.tr
        self._part_row = FieldRow(tr("What"), self._part, tooltip=tr("Which queries and keys are exported."))
        self._format_row = FieldRow(tr("Format"), self._format, tooltip=tr("Kind of file."))
        self._look = [
            FieldRow(tr("Journal"), self._preset, tooltip=tr("Common widths of journals.")),
            FieldRow(tr("Width"), self._width, tooltip=tr("Width of the whole figure.")),
            FieldRow(tr("Resolution"), self._dpi, tooltip=tr("Pixels an inch of a PNG and of a copy.")),
            FieldRow(tr("Letters"), self._font_size, tooltip=tr("Size of the letters.")),
            FieldRow(tr("Colours"), self._colormap, tooltip=tr("Colour map of the figure.")),
            FieldRow(tr("Axes"), self._labels, tooltip=tr("Tokens at both axes; without them, indices.")),
            FieldRow(tr("Caption"), self._caption, tooltip=tr("A line below the figure that names its source.")),
        ]
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_1)
        for row in (self._part_row, self._format_row, *self._look):
            layout.addWidget(row)

    def _connect(self) -> None:
        self._part.value_picked.connect(self._on_part_value_picked)
        self._format.value_picked.connect(self._on_format_value_picked)
        self._preset.value_picked.connect(self._on_preset_value_picked)
        self._width.valueChanged.connect(self._on_width_value_changed)
        self._dpi.value_picked.connect(self._on_dpi_value_picked)
        self._font_size.valueChanged.connect(self._on_font_size_value_changed)
        self._colormap.value_picked.connect(self._on_colormap_value_picked)
        self._labels.toggled.connect(self._on_labels_toggled)
        self._caption.toggled.connect(self._on_caption_toggled)

    def show_choices(self, choices: ExportChoices) -> None:
        """Show these; emits nothing."""
        with (
            QSignalBlocker(self._width),
            QSignalBlocker(self._font_size),
            QSignalBlocker(self._labels),
            QSignalBlocker(self._caption),
        ):
            self._part.set_value("whole" if choices.whole else "part")
            self._format.set_value(choices.format)
            presets = [width for _, width in WIDTH_PRESETS]
            self._preset.set_value(f"{choices.width_mm:g}" if choices.width_mm in presets else _OTHER_WIDTH)
            self._width.setValue(choices.width_mm)
            self._dpi.set_value(choices.dpi)
            self._font_size.setValue(choices.font_size)
            self._colormap.set_value(choices.colormap or _AS_ON_SCREEN)
            self._labels.setChecked(choices.labels)
            self._caption.setChecked(choices.caption)
        self._part_row.set_hint(self._source.summary(choices))
        self._format_row.set_hint(FORMAT_LABELS[choices.format][1])
        for row in self._look:
            row.setEnabled(choices.format not in DATA_FORMATS)

    def _change(self, **changes: Any) -> None:
        self.changed.emit(changes)

    @Slot(object)
    def _on_part_value_picked(self, value: str) -> None:
        self._change(whole=value == "whole")

    @Slot(object)
    def _on_format_value_picked(self, value: str) -> None:
        self._change(format=value)

    @Slot(object)
    def _on_preset_value_picked(self, value: str) -> None:
        if value != _OTHER_WIDTH:
            self._change(width_mm=float(value))
        else:
            self._width.setFocus()

    @Slot(float)
    def _on_width_value_changed(self, value: float) -> None:
        self._change(width_mm=value)

    @Slot(object)
    def _on_dpi_value_picked(self, value: int) -> None:
        self._change(dpi=value)

    @Slot(float)
    def _on_font_size_value_changed(self, value: float) -> None:
        self._change(font_size=value)

    @Slot(object)
    def _on_colormap_value_picked(self, value: str) -> None:
        self._change(colormap=None if value == _AS_ON_SCREEN else value)

    @Slot(bool)
    def _on_labels_toggled(self, is_on: bool) -> None:
        self._change(labels=is_on)

    @Slot(bool)
    def _on_caption_toggled(self, is_on: bool) -> None:
        self._change(caption=is_on)


def _spin(limits: tuple[float, float], unit: str, parent: QWidget) -> QDoubleSpinBox:
    spin = QDoubleSpinBox(parent, decimals=1, singleStep=0.5, suffix=unit)
    spin.setRange(*limits)
    spin.setKeyboardTracking(False)
    return spin
