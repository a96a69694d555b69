"""The tensor browser in the window: over models that run, checkpoints that do not, and files that change."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtWidgets import QLabel, QLineEdit, QTabBar
from pytestqt.qtbot import QtBot
from safetensors.numpy import save_file

from core_model.checkpoint import open_checkpoint
from explorer.app import Explorer
from explorer.plots.heatmap import HeatmapPlot
from explorer.state.moves import open_source, pick_head
from explorer.state.tensor_moves import pick_head_part, pick_tensor, set_pooling
from explorer.viewmodels.records import CurvePicture, HeatmapPicture
from explorer.viewmodels.tensor_picture import TensorPicture
from explorer.widgets.tensor_tree import TensorTree
from tests.e2e.conftest import Launch, wait_until_idle

NAME = "decoder.layers.1.attention.query.weight"


def browse(explorer: Explorer, qtbot: QtBot) -> None:
    """Show the panel, and wait for what it shows."""
    explorer.window.show_panel("tensors")
    wait_until_idle(qtbot, explorer)


def picture(explorer: Explorer) -> TensorPicture:
    found = explorer.window.host("tensor").picture
    assert isinstance(found, TensorPicture)
    return found


def matrix(explorer: Explorer) -> HeatmapPicture:
    found = picture(explorer).matrix
    assert found is not None
    return found


def texts(explorer: Explorer, key: str) -> list[str]:
    """What a panel says on screen."""
    return [label.text() for label in explorer.window.host(key).findChildren(QLabel) if label.isVisible()]


def save_strange(folder: Path, **tensors: np.ndarray) -> Path:
    folder.mkdir()
    save_file(tensors, folder / "model.safetensors")
    return folder


@pytest.fixture
def large(tmp_path: Path) -> Path:
    values = np.random.default_rng(0).normal(size=(2000, 1500)).astype(np.float32)
    return save_strange(tmp_path / "strange", large=values, small=values[:3, :4].copy())


def test_the_tensor_gone_to_in_the_list_is_shown_as_stored(launch: Launch, model_folder: Path, qtbot: QtBot):
    explorer = launch(model_folder / "decoder")
    browse(explorer, qtbot)
    tree = explorer.window.host("tensors").findChild(TensorTree)
    assert tree is not None
    tree.tensor_picked.emit(NAME)
    wait_until_idle(qtbot, explorer)
    with open_checkpoint(model_folder / "decoder") as checkpoint:
        np.testing.assert_array_equal(matrix(explorer).values, checkpoint.read_tensor(NAME))
    assert matrix(explorer).is_exact and matrix(explorer).title == NAME


def test_a_filter_leaves_what_has_its_words_and_the_totals_follow(launch: Launch, model_folder: Path, qtbot: QtBot):
    explorer = launch(model_folder / "decoder")
    browse(explorer, qtbot)
    host = explorer.window.host("tensors")
    words, tree = host.findChild(QLineEdit), host.findChild(TensorTree)
    assert words is not None and tree is not None
    qtbot.keyClicks(words, "layers.1 query weight")
    assert tree.model().rowCount() == 1
    assert any(text.startswith("1 tensor of ") for text in texts(explorer, "tensors"))


def test_the_circuit_of_the_shared_head_is_shown_and_follows_it(launch: Launch, model_folder: Path, qtbot: QtBot):
    explorer = launch(model_folder / "decoder")
    browse(explorer, qtbot)
    explorer.store.settle(pick_head_part("qk"))
    explorer.store.apply(pick_head(1, 2))
    wait_until_idle(qtbot, explorer)
    with open_checkpoint(model_folder / "decoder") as checkpoint:
        query, key = (
            checkpoint.read_tensor(f"decoder.layers.1.attention.{name}.weight")[16:24] for name in ("query", "key")
        )
    np.testing.assert_allclose(matrix(explorer).values, query.T @ key, rtol=1e-4, atol=1e-5)


def test_a_closer_part_of_a_large_tensor_is_exact(launch: Launch, large: Path, qtbot: QtBot):
    explorer = launch(large)
    browse(explorer, qtbot)
    explorer.store.settle(set_pooling("mean"))
    wait_until_idle(qtbot, explorer)
    whole = matrix(explorer)
    assert whole.values.shape == (1000, 750) and whole.note == "mean of up to 2 \u00d7 2"
    host = explorer.window.host("tensor")
    plot = host.findChild(HeatmapPlot)
    assert plot is not None
    plot.set_view_range((100.0, 140.0), (200.0, 260.0))
    qtbot.waitUntil(lambda: host.on_screen is not None and host.on_screen.matrix.is_exact)
    part = host.on_screen.matrix
    with open_checkpoint(large) as checkpoint:
        values = checkpoint.read_tensor("large")
    np.testing.assert_array_equal(part.values, values[slice(*part.rows), slice(*part.cols)])
    assert part.rows[0] <= 100 < 140 <= part.rows[1]
    plot.reset_view()
    qtbot.waitUntil(lambda: host.on_screen.matrix.is_whole)


def test_singular_values_are_computed_when_their_page_is_opened(launch: Launch, large: Path, qtbot: QtBot):
    explorer = launch(large)
    browse(explorer, qtbot)
    explorer.store.settle(pick_tensor("small"))
    host = explorer.window.host("spectrum")
    assert host.picture is None
    tabs = next(tabs for tabs in explorer.window.host("tensor").findChildren(QTabBar))
    tabs.setCurrentIndex(2)
    wait_until_idle(qtbot, explorer)
    with open_checkpoint(large) as checkpoint:
        expected = np.linalg.svd(checkpoint.read_tensor("small"), compute_uv=False)
    assert isinstance(host.picture, CurvePicture)
    np.testing.assert_allclose(host.picture.series[0].y, expected, rtol=1e-4)


def test_a_checkpoint_without_a_model_comes_up_in_the_browser_with_the_reason(
    launch: Launch, model_folder: Path, large: Path, qtbot: QtBot
):
    explorer = launch(model_folder / "decoder", "a cat")
    explorer.store.apply(open_source(large))
    wait_until_idle(qtbot, explorer)
    assert explorer.window.host("tensors").isVisible()
    assert any("only its tensors" in text for text in texts(explorer, "tensors"))
    assert matrix(explorer).title == "large"


def test_a_file_that_was_deleted_is_still_read_and_one_that_was_cut_short_says_so(
    launch: Launch, large: Path, qtbot: QtBot
):
    explorer = launch(large)
    browse(explorer, qtbot)
    file, kept = large / "model.safetensors", large / "kept"
    os.link(file, kept)
    file.unlink()
    explorer.store.settle(pick_tensor("small"))
    wait_until_idle(qtbot, explorer)
    assert matrix(explorer).title == "small"
    os.truncate(kept, 1000)
    explorer.store.settle(set_pooling("mean"))
    wait_until_idle(qtbot, explorer)
    assert any("has changed since it was opened" in text for text in texts(explorer, "tensor"))
    tree = explorer.window.host("tensors").findChild(TensorTree)
    assert tree is not None and tree.isVisible()


def test_a_tensor_of_whole_numbers_keeps_them(launch: Launch, tmp_path: Path, qtbot: QtBot):
    packed = np.array([[2**31 - 1, -(2**31)], [0, 7]], dtype=np.int32)
    explorer = launch(save_strange(tmp_path / "packed", qweight=packed))
    browse(explorer, qtbot)
    facts = {row.name: row.value for section in picture(explorer).facts.sections for row in section.rows}
    assert facts["stored"] == "16 B as int32"
    assert matrix(explorer).values[0, 1] == -(2.0**31)


def test_names_of_any_kind_stay_on_one_line(launch: Launch, tmp_path: Path, qtbot: QtBot):
    name = "two\nlines \u202e" + 5000 * "x"
    explorer = launch(save_strange(tmp_path / "named", **{name: np.ones((2, 2), dtype=np.float32)}))
    browse(explorer, qtbot)
    title = matrix(explorer).title
    assert title.startswith("two\\nlines \\u202exxx") and len(title) < 200
