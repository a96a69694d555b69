"""What the File and Model menus do with files, in the real window."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pytestqt.qtbot import QtBot
from safetensors.numpy import save_file

from explorer.actions.commands import command
from explorer.viewmodels.model_card import health
from tests.e2e.conftest import Launch, wait_until_idle


def test_checking_the_weights_of_what_cannot_be_run_turns_its_health_to_a_warning(
    launch: Launch, qtbot: QtBot, tmp_path: Path
) -> None:
    save_file({"strange": np.full((2, 3), np.nan, dtype=np.float32)}, tmp_path / "model.safetensors")
    explorer = launch(tmp_path)
    command("check_health").run(explorer.window.desk)
    wait_until_idle(qtbot, explorer)
    state = explorer.store.state
    assert state.model is not None and "NaN" in state.model.info.warnings[-1]
    assert state.notices[-1].severity == "warning"


def test_a_healthy_model_is_said_to_be(launch: Launch, qtbot: QtBot, model_folder: Path) -> None:
    explorer = launch(model_folder / "decoder", "a cat")
    command("check_health").run(explorer.window.desk)
    wait_until_idle(qtbot, explorer)
    state = explorer.store.state
    assert state.notices[-1].severity == "info" and "nothing to remark" in state.notices[-1].text
    assert state.model is not None and health(state.model.info)[0] == "ok"
