"""The dialog alone: what it asks, what it shows, what it remembers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QFileDialog, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from explorer.chrome.export_dialog import ExportDialog
from explorer.chrome.export_form import ExportForm
from explorer.figures.export import ExportSource, part_on_screen
from explorer.figures.queries import FigureQuery, Preview, PreviewQuery, TableQuery
from explorer.figures.render import render
from explorer.state.export import ExportChoices
from explorer.state.outcome import Problem
from explorer.state.queries import traced
from explorer.widgets.paper import Paper
from explorer.widgets.remark import Remark
from tests.explorer.states import traced_state


@pytest.fixture
def source(make_spec, provenance) -> ExportSource:
    whole = make_spec(tuple("abcdef")).picture
    trace = traced(traced_state())
    assert trace
    return ExportSource(
        whole=whole, on_screen=part_on_screen(whole, (0, 3), (0, 3)), provenance=provenance, trace=trace
    )


@pytest.fixture
def dialog(qtbot: QtBot, themes, source: ExportSource) -> Iterator[ExportDialog]:
    dialog = ExportDialog(source, ExportChoices(format="svg"))
    qtbot.addWidget(dialog)
    with qtbot.waitExposed(dialog):
        dialog.show()
    yield dialog


def button(dialog: ExportDialog, title: str) -> QPushButton:
    return next(button for button in dialog.findChildren(QPushButton) if button.text() == title)


def change(dialog: ExportDialog, **changes: object) -> None:
    form = dialog.findChild(ExportForm)
    assert form
    form.changed.emit(changes)


def remark(dialog: ExportDialog) -> str:
    found = dialog.findChild(Remark)
    assert found
    return found.text


def paper(dialog: ExportDialog) -> Paper:
    found = dialog.findChild(Paper)
    assert found
    return found


def choose_path(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *arguments: (path, ""))


def test_a_preview_is_asked_for_at_first_and_after_each_rest_of_the_choices(qtbot, dialog, source):
    with qtbot.waitSignal(dialog.preview_asked) as asked:
        pass
    assert isinstance(asked.args[0], PreviewQuery)
    with qtbot.waitSignal(dialog.preview_asked) as asked:
        change(dialog, width_mm=114.0)
        change(dialog, labels=False)
        change(dialog, format="svg")
    spec = asked.args[0].spec
    assert asked.args[0].format == "svg"
    assert (spec.picture, spec.options.width_mm, spec.options.labels) == (source.whole, 114.0, False)


def test_the_preview_is_the_figure_itself_and_can_be_copied(qtbot, dialog, source):
    png = render(source.spec(dialog.choices), "png")
    dialog.show_preview(Preview(png=png, unprintable=""))
    expected = QImage.fromData(png)
    assert paper(dialog).pixmap.size() == expected.size()
    qtbot.mouseClick(button(dialog, "Copy image"), Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().image().size() == expected.size()


def test_a_figure_of_other_choices_is_not_copied(dialog, source):
    assert paper(dialog).text == "Drawing the figure" and not button(dialog, "Copy image").isEnabled()
    dialog.show_preview(Preview(png=render(source.spec(dialog.choices), "png"), unprintable=""))
    change(dialog, width_mm=114.0)
    assert not paper(dialog).pixmap.isNull() and not button(dialog, "Copy image").isEnabled()


def test_characters_that_no_font_has_are_named(dialog):
    dialog.show_preview(Preview(png=b"", unprintable="中"))
    assert remark(dialog) == "No installed font has 中: the figure spells their codes."


def test_why_there_is_no_figure_stands_in_its_place(dialog):
    dialog.show_preview_problem(Problem(what="", message="The width is 31 mm: too narrow"))
    assert paper(dialog).text == "The width is 31 mm: too narrow"
    assert not button(dialog, "Copy image").isEnabled()


def test_saving_asks_for_a_name_and_for_the_figure(qtbot, dialog, monkeypatch, tmp_path):
    choose_path(monkeypatch, str(tmp_path / "figure.pdf"))
    with qtbot.waitSignal(dialog.file_asked) as asked:
        qtbot.mouseClick(button(dialog, "Save…"), Qt.MouseButton.LeftButton)
    query = asked.args[0]
    assert isinstance(query, FigureQuery) and query.path == tmp_path / "figure.pdf"
    assert not button(dialog, "Save…").isEnabled()
    dialog.show_saved(query.path)
    assert remark(dialog) == f"Saved {tmp_path / 'figure.pdf'}"
    assert button(dialog, "Save…").isEnabled()


def test_a_name_without_an_ending_gets_that_of_the_format(qtbot, dialog, monkeypatch, tmp_path):
    change(dialog, format="npz", whole=False)
    choose_path(monkeypatch, str(tmp_path / "numbers"))
    with qtbot.waitSignal(dialog.file_asked) as asked:
        qtbot.mouseClick(button(dialog, "Save…"), Qt.MouseButton.LeftButton)
    query = asked.args[0]
    assert isinstance(query, TableQuery)
    assert (query.path, query.rows, query.cols) == (tmp_path / "numbers.npz", (0, 3), (0, 3))


def test_a_name_of_an_unknown_kind_is_refused_at_once(qtbot, dialog, monkeypatch, tmp_path):
    choose_path(monkeypatch, str(tmp_path / "figure.doc"))
    with qtbot.assertNotEmitted(dialog.file_asked):
        qtbot.mouseClick(button(dialog, "Save…"), Qt.MouseButton.LeftButton)
    assert remark(dialog).startswith("'figure.doc' ends in '.doc'")


def test_no_name_no_file(qtbot, dialog, monkeypatch):
    choose_path(monkeypatch, "")
    with qtbot.assertNotEmitted(dialog.file_asked):
        qtbot.mouseClick(button(dialog, "Save…"), Qt.MouseButton.LeftButton)


def test_why_the_file_was_not_written_is_said(dialog):
    dialog.show_problem(Problem(what="", message="Cannot write a.pdf: the disk is full"))
    assert remark(dialog) == "Cannot write a.pdf: the disk is full"


def test_numbers_are_copied_as_text(qtbot, dialog):
    with qtbot.waitSignal(dialog.text_asked) as asked:
        qtbot.mouseClick(button(dialog, "Copy CSV"), Qt.MouseButton.LeftButton)
    assert asked.args[0].path is None
    dialog.show_copied("a,b\r\n")
    assert QGuiApplication.clipboard().text().splitlines() == ["a,b"]


def test_a_matrix_too_large_for_the_clipboard_is_left_to_files(
    qtbot, themes, make_spec, provenance, source, monkeypatch
):
    monkeypatch.setattr("explorer.chrome.export_dialog.CLIPBOARD_CELLS", 35)
    large = ExportDialog(source, ExportChoices())
    qtbot.addWidget(large)
    assert not button(large, "Copy CSV").isEnabled()
    large.show_saved(Path("figure.pdf"))
    assert not button(large, "Copy CSV").isEnabled()


def test_data_formats_show_the_beginning_of_the_file_and_no_figure_choices(dialog):
    change(dialog, format="npz")
    assert paper(dialog).text.startswith("attention")
    assert not button(dialog, "Copy image").isEnabled()


def test_changes_are_told_so_that_they_can_be_remembered(qtbot, dialog):
    with qtbot.waitSignal(dialog.choices_changed) as told:
        change(dialog, dpi=600)
    assert told.args[0] == ExportChoices(format="svg", dpi=600)


def test_every_choice_on_screen_changes_the_field_it_names(qtbot, source):
    form = ExportForm(source, ExportChoices())
    qtbot.addWidget(form)
    told: list[dict[str, object]] = []
    form.changed.connect(told.append)
    form._part.value_picked.emit("part")
    form._format.value_picked.emit("csv")
    form._preset.value_picked.emit("174")
    form._width.setValue(90.5)
    form._dpi.setValue(450)
    form._font_size.setValue(8.0)
    form._colormap.value_picked.emit("magma")
    form._colormap.value_picked.emit("")
    form._labels.setChecked(False)
    form._caption.setChecked(False)
    assert told == [
        {"whole": False},
        {"format": "csv"},
        {"width_mm": 174.0},
        {"width_mm": 90.5},
        {"dpi": 450},
        {"font_size": 8.0},
        {"colormap": "magma"},
        {"colormap": None},
        {"labels": False},
        {"caption": False},
    ]


def test_showing_choices_tells_no_change(qtbot, source):
    form = ExportForm(source, ExportChoices())
    qtbot.addWidget(form)
    with qtbot.assertNotEmitted(form.changed):
        form.show_choices(ExportChoices(format="png", width_mm=90, dpi=72, labels=False, caption=False, whole=False))
    assert form._preset.currentText() == "Other"


def test_the_whole_matrix_is_chosen_when_all_of_it_is_on_screen(qtbot, themes, source):
    alone = ExportSource(whole=source.whole, on_screen=source.whole, provenance=source.provenance, trace=source.trace)
    dialog = ExportDialog(alone, ExportChoices(whole=False))
    qtbot.addWidget(dialog)
    assert dialog.choices.whole


def test_the_first_folder_offered_is_where_the_last_file_went(qtbot, dialog, monkeypatch, tmp_path):
    offered: list[str] = []

    def answer(parent: object, title: str, first: str, kinds: str) -> tuple[str, str]:
        offered.append(first)
        return str(tmp_path / "a.svg"), ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", answer)
    for _ in range(2):
        qtbot.mouseClick(button(dialog, "Save…"), Qt.MouseButton.LeftButton)
        dialog.show_saved(tmp_path / "a.svg")
    assert Path(offered[1]).parent == tmp_path


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_file_whose_ending_the_person_left_out_is_replaced_only_with_a_yes(
    qtbot, dialog, monkeypatch, tmp_path, is_replaced
):
    there = tmp_path / f"thesis.{dialog.choices.format}"
    there.write_text("precious")
    asked: list[str] = []

    def answer(parent: object, title: str, text: str) -> QMessageBox.StandardButton:
        asked.append(text)
        return QMessageBox.StandardButton.Yes if is_replaced else QMessageBox.StandardButton.No

    monkeypatch.setattr(QMessageBox, "question", answer)
    choose_path(monkeypatch, str(tmp_path / "thesis"))
    queries: list[object] = []
    dialog.file_asked.connect(queries.append)
    qtbot.mouseClick(button(dialog, "Save…"), Qt.MouseButton.LeftButton)
    assert asked == [f"{there.name} is there already. Replace it?"] and len(queries) == is_replaced


def test_a_number_after_a_point_is_no_ending(qtbot, dialog, monkeypatch, tmp_path):
    choose_path(monkeypatch, str(tmp_path / "fig v1.2"))
    with qtbot.waitSignal(dialog.file_asked) as asked:
        qtbot.mouseClick(button(dialog, "Save…"), Qt.MouseButton.LeftButton)
    assert asked.args[0].path == tmp_path / f"fig v1.2.{dialog.choices.format}"
