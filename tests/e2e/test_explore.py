"""Open, type, pick, zoom, read: what a person does with a model, in the real window."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QComboBox, QLabel, QWidget
from pytestqt.qtbot import QtBot

from core_model.checkpoint import open_checkpoint
from core_model.results import FloatArray
from core_model.trace import run_trace
from explorer.actions.commands import command
from explorer.app import Explorer
from explorer.chrome.text_field import TextField
from explorer.main_window import MainWindow
from explorer.plots.heatmap import HeatmapPlot
from explorer.plots.matrix import MatrixCanvas
from explorer.state.app_state import Cell, ModelInput
from explorer.state.moves import open_source, pick_head, pick_site, set_display, set_inputs, set_layout
from explorer.viewmodels.readout import readout
from explorer.viewmodels.records import HeatmapPicture
from explorer.viewmodels.sizes import weight_text
from explorer.widgets.cell_card import CellCard
from explorer.widgets.elided_label import ElidedLabel
from explorer.widgets.token_strip import TokenStrip
from tests.e2e.conftest import Launch, wait_until_idle

Widget = TypeVar("Widget", bound=QWidget)
TEXT = "a cat sat on a mat."


def attention(folder: Path, text: str, site: str, layer: int, head: int, target: str | None = None) -> FloatArray:
    """The same matrix through the library alone."""
    with open_checkpoint(folder) as checkpoint:
        trace = run_trace(checkpoint.load_model(), checkpoint.encode(text, target=target))
        return trace.attention(site, layer, head)


def picture(explorer: Explorer) -> HeatmapPicture:
    shown = explorer.window.host("matrix").picture
    assert isinstance(shown, HeatmapPicture)
    return shown


def part(explorer: Explorer, kind: type[Widget]) -> Widget:
    """A part of the matrix panel."""
    found = explorer.window.host("matrix").findChild(kind)
    assert found is not None
    return found


def fields(window: MainWindow) -> list[TextField]:
    return [field for field in window.findChildren(TextField) if field.isVisible()]


def texts(window: MainWindow, key: str) -> str:
    """Every word that a panel shows in labels."""
    return "\n".join(label.text() for label in window.host(key).findChildren(QLabel) if label.isVisible())


def test_opening_with_a_text_shows_the_exact_matrix_of_the_first_head(launch: Launch, model_folder: Path) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    shown = picture(explorer)
    np.testing.assert_array_equal(shown.values, attention(model_folder / "decoder", TEXT, "decoder.self", 0, 0))
    assert "".join(shown.row_labels) == TEXT


def test_nothing_is_open_at_first_and_the_window_says_what_to_do(launch: Launch) -> None:
    window = launch().window
    assert "Open a model" in texts(window, "matrix")


def test_a_model_without_a_text_asks_for_one(launch: Launch, model_folder: Path) -> None:
    window = launch(model_folder / "decoder").window
    assert "Type a text" in texts(window, "matrix")


def test_typing_shows_the_new_text_without_further_ado(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    field = fields(explorer.window)[0]
    field.selectAll()
    qtbot.keyClicks(field, "the dog")
    qtbot.waitUntil(lambda: explorer.store.state.inputs.text == "the dog")
    wait_until_idle(qtbot, explorer)
    assert "".join(picture(explorer).row_labels) == "the dog"


def test_keys_step_through_layers_and_heads(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    plot = part(explorer, HeatmapPlot)
    plot.setFocus()
    for key in "].":
        qtbot.keyClicks(plot, key)
    wait_until_idle(qtbot, explorer)
    np.testing.assert_array_equal(
        picture(explorer).values, attention(model_folder / "decoder", TEXT, "decoder.self", 1, 1)
    )


def test_keys_that_step_heads_are_letters_in_the_text(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    field = fields(explorer.window)[0]
    field.setFocus()
    field.clear()
    qtbot.keyClicks(field, "s. s")
    assert field.text() == "s. s"
    assert (explorer.store.state.selection.head, explorer.store.state.display.scale) == (0, "linear")


def test_of_many_fast_clicks_the_last_head_is_drawn(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    for number in range(60):
        explorer.store.apply(pick_head(number % 2, number % 3))
    wait_until_idle(qtbot, explorer)
    assert picture(explorer).title.endswith("layer 1 head 2")
    np.testing.assert_array_equal(
        picture(explorer).values, attention(model_folder / "decoder", TEXT, "decoder.self", 1, 2)
    )


def test_pointing_at_a_cell_reads_its_exact_weight(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    weights = attention(model_folder / "decoder", TEXT, "decoder.self", 0, 0)
    canvas = part(explorer, MatrixCanvas)
    cell = canvas.frame.pixels((7, 8), (3, 4)).center().toPoint()
    qtbot.mouseMove(canvas, cell)
    qtbot.waitUntil(lambda: explorer.store.state.hover == Cell(query=7, key=3))
    wait_until_idle(qtbot, explorer)
    rank = 1 + int((weights[7] > weights[7, 3]).sum())
    card = [label.text() for label in part(explorer, CellCard).findChildren(QLabel)]
    assert weight_text(weights[7, 3]) in card
    assert f"rank {rank} of 8" in card  # a causal row sees itself and the seven before it
    facts = {
        row.name: row.value for section in explorer.window.host("inspector").picture.sections for row in section.rows
    }
    assert facts["weight"] == weight_text(weights[7, 3])
    assert facts["rank"] == f"{rank} in its row"
    explorer.store.apply(pick_head(1, 0))
    wait_until_idle(qtbot, explorer)
    weights = attention(model_folder / "decoder", TEXT, "decoder.self", 1, 0)
    card = part(explorer, CellCard)
    assert weight_text(weights[7, 3]) in [label.text() for label in card.findChildren(QLabel)]
    explorer.store.apply(set_inputs(ModelInput(text="a dog")))
    assert card.isHidden()


def test_a_click_locks_the_cell_and_escape_frees_it(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    canvas = part(explorer, MatrixCanvas)
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.frame.pixels((5, 6), (2, 3)).center().toPoint())
    assert explorer.store.state.selection.cell == Cell(query=5, key=2)
    qtbot.keyClick(explorer.window, Qt.Key.Key_Escape)
    assert explorer.store.state.selection.cell is None


def test_pointing_at_a_token_marks_it_in_the_matrix(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    strip = next(strip for strip in explorer.window.findChildren(TokenStrip) if strip.isVisible())
    strip.token_hovered.emit(4)
    assert explorer.store.state.hover == Cell(query=4, key=4)
    strip.hover_left.emit()
    assert explorer.store.state.hover is None


def test_undo_brings_the_head_and_its_picture_back(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    before = picture(explorer)
    explorer.store.apply(pick_head(1, 2))
    wait_until_idle(qtbot, explorer)
    qtbot.keyClick(explorer.window, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    wait_until_idle(qtbot, explorer)
    assert picture(explorer).title == before.title
    np.testing.assert_array_equal(picture(explorer).values, before.values)


def test_a_long_text_is_pooled_and_exact_where_one_zooms_in(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    text = "the cat sat on the mat. " * 60
    explorer = launch(model_folder / "decoder", text)
    assert picture(explorer).note.startswith("maximum of up to 2 x 2 cells")
    plot = part(explorer, HeatmapPlot)
    plot.set_view_range((900.0, 940.0), (500.0, 540.0))
    qtbot.waitUntil(lambda: plot.picture is not None and plot.picture.note == "exact cells", timeout=30_000)
    tile = plot.picture
    weights = attention(model_folder / "decoder", text, "decoder.self", 0, 0)
    assert tile is not None
    np.testing.assert_allclose(tile.values, weights[slice(*tile.rows), slice(*tile.cols)], rtol=1e-5)
    cell = readout(tile, 920, 520)
    assert cell is not None
    assert cell.weight == weight_text(weights[920, 520])
    plot.reset_view()
    qtbot.waitUntil(lambda: plot.picture is picture(explorer), timeout=30_000)


def test_back_at_a_matrix_seen_before_its_cells_are_told(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    """It comes from the cache, drawn before the panels hear of the change."""
    explorer = launch(model_folder / "translator", "abc", target="fed")
    for site in ("decoder.self", "decoder.cross", "decoder.self"):
        explorer.store.apply(pick_site(site))
        wait_until_idle(qtbot, explorer)
    explorer.store.undo()
    wait_until_idle(qtbot, explorer)
    part(explorer, HeatmapPlot).cell_hovered.emit(1, 0)
    assert explorer.store.state.hover == Cell(query=1, key=0)


def test_a_translator_has_three_sites_and_two_texts(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "translator", "abc", target="fed")
    assert [field.text() for field in fields(explorer.window)] == ["abc", "fed"]
    explorer.store.apply(pick_site("decoder.cross"))
    wait_until_idle(qtbot, explorer)
    shown = picture(explorer)
    assert shown.row_labels == ("<start>", "f", "e", "d")
    assert shown.col_labels == ("a", "b", "c")
    expected = attention(model_folder / "translator", "abc", "decoder.cross", 0, 0, "fed")
    np.testing.assert_array_equal(shown.values, expected)
    site = next(box for box in explorer.window.findChildren(QComboBox) if box.isVisible())
    assert [site.itemText(index) for index in range(site.count())] == [
        "Encoder self-attention",
        "Decoder self-attention",
        "Cross-attention",
    ]


def test_an_encoder_reads_a_pair(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "encoder", "abc")
    assert len(fields(explorer.window)) == 2
    qtbot.keyClicks(fields(explorer.window)[1], "de")
    qtbot.keyClick(fields(explorer.window)[1], Qt.Key.Key_Return)
    wait_until_idle(qtbot, explorer)
    assert picture(explorer).row_labels == tuple("abcde")


def test_a_model_without_a_tokenizer_reads_ids(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "bare", "5 17 2")
    assert picture(explorer).row_labels == ("5", "17", "2")
    explorer.store.apply(set_inputs(ModelInput(text="5 cat")))
    wait_until_idle(qtbot, explorer)
    assert "'cat' is not a token id" in texts(explorer.window, "matrix")


def test_what_cannot_be_opened_is_said_where_the_matrix_was_and_undone(
    launch: Launch, model_folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    broken = tmp_path / "model.safetensors"
    broken.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    explorer.store.apply(open_source(broken))
    wait_until_idle(qtbot, explorer)
    said = texts(explorer.window, "matrix")
    assert "The checkpoint cannot be opened" in said
    assert "Git LFS pointer" in said
    assert explorer.window.host("matrix").picture is None
    explorer.store.undo()
    wait_until_idle(qtbot, explorer)
    assert "".join(picture(explorer).row_labels) == TEXT


def test_a_text_the_model_cannot_read_is_said_and_no_old_picture_stays(
    launch: Launch, model_folder: Path, qtbot: QtBot
) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    explorer.store.apply(set_inputs(ModelInput(text="ÄÖÜ")))
    wait_until_idle(qtbot, explorer)
    assert "The text cannot be read" in texts(explorer.window, "matrix")
    assert explorer.window.host("heads").picture is None


def test_the_scale_redraws_the_same_answer(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    explorer.store.apply(set_display(scale="row_max", colormap="magma"))
    assert explorer.controller.is_idle
    shown = picture(explorer)
    assert shown.colormap == "magma"
    assert shown.values.max(axis=1) == pytest.approx(np.ones(len(TEXT)))


def drop(window: MainWindow, path: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    buttons, keys = Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    window.dropEvent(QDropEvent(QPointF(5, 5), Qt.DropAction.CopyAction, data, buttons, keys))


def test_a_dropped_folder_opens_and_a_dropped_text_is_read(
    launch: Launch, model_folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    explorer = launch()
    text = tmp_path / "poem.txt"
    text.write_text("a rose is a rose\n", encoding="utf-8")
    drop(explorer.window, model_folder / "decoder")
    drop(explorer.window, text)
    wait_until_idle(qtbot, explorer)
    assert "".join(picture(explorer).row_labels) == "a rose is a rose"
    assert explorer.store.state.recent == (model_folder / "decoder",)


def test_a_text_dropped_in_train_fills_in_the_form(
    launch: Launch, model_folder: Path, tmp_path: Path, qtbot: QtBot
) -> None:
    text = tmp_path / "novel.txt"
    text.write_text("It was the best of times. " * 100)
    explorer = launch(model_folder / "decoder", "abc")
    explorer.store.settle(set_layout("train"))
    wait_until_idle(qtbot, explorer)
    drop(explorer.window, text)
    assert explorer.store.state.inputs.text == "abc"
    labels = explorer.window.host("train").findChildren(ElidedLabel)
    assert str(text) in [label.text() for label in labels if label.isVisible()]
    assert command("train_start").is_enabled(explorer.window.desk)


def test_a_dropped_file_that_is_no_text_is_refused_with_a_reason(
    launch: Launch, model_folder: Path, tmp_path: Path
) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    text = tmp_path / "latin.txt"
    text.write_bytes("Grüße".encode("latin-1"))
    drop(explorer.window, text)
    assert "is not UTF-8 text (byte 2 is 0xfc)" in explorer.store.state.notices[-1].text
    assert explorer.store.state.inputs.text == TEXT


def test_a_click_on_a_column_of_the_positions_draws_its_curve(launch: Launch, model_folder: Path, qtbot: QtBot) -> None:
    explorer = launch(model_folder / "encoder", "a cat")
    explorer.window.show_panel("positions")
    wait_until_idle(qtbot, explorer)
    (heatmap,) = explorer.window.host("positions").findChildren(HeatmapPlot)
    before = explorer.window.host("positions").picture.dimensions
    chosen = min(set(range(16)) - set(before))
    heatmap.cell_clicked.emit(0, chosen)
    assert chosen in explorer.window.host("positions").picture.dimensions


def test_while_a_cell_is_locked_every_view_tells_of_it_and_of_none_under_the_mouse(
    launch: Launch, model_folder: Path, qtbot: QtBot
) -> None:
    explorer = launch(model_folder / "decoder", TEXT)
    canvas, card = part(explorer, MatrixCanvas), part(explorer, CellCard)
    strip = next(strip for strip in explorer.window.findChildren(TokenStrip) if strip.isVisible())
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.frame.pixels((5, 6), (2, 3)).center().toPoint())
    for row in 3, 7:  # the mouse may rest on either, left there by another test
        qtbot.mouseMove(canvas, canvas.frame.pixels((row, row + 1), (3, 4)).center().toPoint())
    qtbot.waitUntil(lambda: explorer.store.state.hover == Cell(query=7, key=3))
    assert strip.accessibleDescription().startswith("K 2 ") and "Q 5 " in strip.accessibleDescription()
    qtbot.keyClick(part(explorer, HeatmapPlot), Qt.Key.Key_Down)
    assert explorer.store.state.locked == Cell(query=6, key=2)
    assert "Q 6 " in strip.accessibleDescription()
    assert card.isHidden()
