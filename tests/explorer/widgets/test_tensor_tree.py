"""The tree of tensors: a lawful model, and what it tells when the person goes somewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from core_model.results import TensorInfo
from explorer.state.app_state import AppState
from explorer.state.tensors import TensorList
from explorer.viewmodels.tensor_list import Grouping, TensorTable, arranged, tensor_table
from explorer.widgets.tensor_tree import TensorTree, TensorTreeModel
from tests.explorer.states import SOURCE


def table(n_layers: int) -> TensorTable:
    tensors = tuple(
        TensorInfo(name=f"h.{i}.{part}.weight", shape=(2, 3), dtype="float32", n_bytes=24, file=Path("a.st"))
        for i in range(n_layers)
        for part in ("attn", "mlp")
    )
    return tensor_table(TensorList(source=SOURCE, tensors=tensors), AppState())


@pytest.mark.parametrize("grouping", ["layer", "role", "none"])
def test_the_model_keeps_the_laws_of_qt(qtmodeltester: ModelTester, grouping: Grouping):
    model, rows = TensorTreeModel(), table(3)
    model.set_rows(rows, arranged(rows, grouping=grouping))
    qtmodeltester.check(model)
    model.set_rows(rows, arranged(rows, words="mlp", grouping=grouping))
    qtmodeltester.check(model)


def test_a_row_shows_what_the_others_of_its_group_do_not_say(qtbot: QtBot):
    model, rows = TensorTreeModel(), table(2)
    model.set_rows(rows, arranged(rows))
    group = model.index(1, 0)
    assert model.data(group) == "h.1 (2)"
    first = model.index(0, 0, group)
    assert (model.data(first), model.name_at(first)) == ("attn.weight", "h.1.attn.weight")
    assert model.data(model.index(0, 1, group)) == "2 \u00d7 3"
    assert model.data(first, Qt.ItemDataRole.ToolTipRole) == "h.1.attn.weight"


def test_going_to_a_tensor_by_keys_tells_its_name_and_being_shown_one_does_not(qtbot: QtBot):
    tree, rows = TensorTree(), table(2)
    qtbot.addWidget(tree)
    told: list[str] = []
    tree.tensor_picked.connect(told.append)
    tree.set_rows(rows, arranged(rows), "h.0.attn.weight")
    assert told == []
    qtbot.keyClick(tree, Qt.Key.Key_Down)
    assert told == ["h.0.mlp.weight"]


def test_the_tensor_looked_at_stays_marked_when_the_order_changes(qtbot: QtBot):
    tree, rows = TensorTree(), table(2)
    qtbot.addWidget(tree)
    tree.set_rows(rows, arranged(rows), "h.1.mlp.weight")
    model = tree.model()
    assert isinstance(model, TensorTreeModel)
    orders: tuple[dict[str, Any], ...] = ({"grouping": "none"}, {"grouping": "role"}, {"words": "mlp"})
    for order in orders:
        tree.set_rows(rows, arranged(rows, **order), "h.1.mlp.weight")
        assert model.name_at(tree.currentIndex()) == "h.1.mlp.weight"


def test_a_click_on_a_title_asks_for_its_order(qtbot: QtBot):
    tree = TensorTree()
    qtbot.addWidget(tree)
    with qtbot.waitSignal(tree.sort_picked) as asked:
        tree.header().setSortIndicator(3, Qt.SortOrder.DescendingOrder)
    assert asked.args == ["size", True]


def test_names_are_as_wide_as_they_need_while_the_shape_stays_in_view(qtbot: QtBot):
    tree, rows = TensorTree(), table(2)
    qtbot.addWidget(tree)
    tree.set_rows(rows, arranged(rows, grouping="none"), None)
    tree.resize(700, 300)
    with qtbot.waitExposed(tree):
        tree.show()
    needed = tree.sizeHintForColumn(0)
    assert needed <= tree.columnWidth(0) <= 2 * needed
    tree.resize(260, 300)
    assert tree.columnWidth(0) + tree.columnWidth(1) <= tree.viewport().width()
    tree.setColumnWidth(0, 300)  # as the person does with the mouse
    tree.resize(280, 300)
    assert tree.columnWidth(0) == 300


def test_a_name_too_long_for_a_line_shows_its_end_and_its_tooltip_the_whole(qtbot: QtBot):
    name = f"{'block.' * 50}weight"
    info = TensorInfo(name=name, shape=(2,), dtype="float32", n_bytes=8, file=Path("a.st"))
    rows = tensor_table(TensorList(source=SOURCE, tensors=(info,)), AppState())
    model = TensorTreeModel()
    model.set_rows(rows, arranged(rows, grouping="none"))
    index = model.index(0, 0)
    assert model.data(index).startswith("...") and model.data(index).endswith("block.weight")
    assert model.data(index, Qt.ItemDataRole.ToolTipRole) == name
