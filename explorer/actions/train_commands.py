"""Train: start, hold, end, look."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from explorer.actions.command import Command
from explorer.actions.desk import Desk
from explorer.state.training_moves import open_run
from explorer.viewmodels.training import settled


def _can_start(desk: Desk) -> bool:
    return not desk.state.training.is_busy and not desk.state.draft.problems


def _start(desk: Desk) -> None:
    """Another training takes the place of one that could not be saved: with the person's yes."""
    tr = QCoreApplication.translate
    question = tr(
        "Command",
        "What the last training has learned could not be saved: Train > Save again tries once more. Start another "
        "training, and lose it?",
    )
    if not desk.trainer.can_save_again or desk.window.questions.is_yes(tr("Command", "Start training"), question):
        desk.trainer.start()
        desk.window.show_layout("train")  # its key works in every layout, and nobody trains without seeing it


def _can_hold(desk: Desk) -> bool:
    return desk.state.training.phase in ("running", "paused")


def _pause(desk: Desk) -> None:
    if desk.state.training.phase == "paused":
        desk.trainer.resume()
    else:
        desk.trainer.pause()


def _open(desk: Desk) -> None:
    watched, snapshot = desk.state.watched, desk.trainer.snapshot
    if snapshot is not None and snapshot.probe is not None:
        watched = settled(watched, snapshot.probe)
    desk.store.apply(open_run(watched))


def _save_elsewhere(desk: Desk) -> None:
    title = QCoreApplication.translate("Command", "A new folder for the trained model")
    if folder := desk.window.questions.new_folder(title):
        desk.trainer.save_again(folder)


TRAIN_COMMANDS = (
    Command(
        key="train_start",
        title="Start training",
        menu="Train",
        group="run",
        shortcut="Ctrl+Return",
        icon="train",
        tooltip="Train a small model with the settings of the form.",
        run=_start,
        is_enabled=_can_start,
    ),
    Command(
        key="train_pause",
        title="Pause or resume",
        menu="Train",
        group="run",
        shortcut="Space",
        icon="pause",
        tooltip="Hold the training before its next update, or let it go on.",
        run=_pause,
        is_enabled=_can_hold,
        is_checked=lambda desk: desk.state.training.phase == "paused",
    ),
    Command(
        key="train_step",
        title="One step",
        menu="Train",
        group="run",
        shortcut="N",
        icon="step",
        tooltip="Make one update, then hold the training.",
        run=lambda desk: desk.trainer.step(),
        is_enabled=_can_hold,
    ),
    Command(
        key="train_stop",
        title="Stop training",
        menu="Train",
        group="run",
        icon="stop",
        tooltip="End the training; what it has learned is saved.",
        run=lambda desk: desk.trainer.stop(),
        is_enabled=lambda desk: desk.state.training.is_busy and desk.state.training.phase != "stopping",
    ),
    Command(
        key="train_save",
        title="Save again",
        menu="Train",
        group="result",
        tooltip="Try once more to save a training that could not be saved, in the same folder.",
        run=lambda desk: desk.trainer.save_again(),
        is_enabled=lambda desk: desk.trainer.can_save_again,
    ),
    Command(
        key="train_save_elsewhere",
        title="Save in another folder…",
        menu="Train",
        group="result",
        tooltip="Save a training that could not be saved in a new folder, which may be on another disk.",
        run=_save_elsewhere,
        is_enabled=lambda desk: desk.trainer.can_save_again,
    ),
    Command(
        key="train_open",
        title="Open the trained model",
        menu="Train",
        group="result",
        icon="model",
        tooltip="Look at the attention of the model as it was saved last.",
        run=_open,
        is_enabled=lambda desk: desk.state.training.saved_step is not None,
    ),
)
