"""What a person can do to the training form and to what is watched: functions from state to state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from core_model.training.tasks import TASKS
from explorer.state.app_state import AppState, ModelInput, Selection
from explorer.state.moves import Move, open_source
from explorer.state.training import TrainingFacts, WatchedHead


def set_draft(**values: Any) -> Move:
    """Fill in fields of the training form."""

    def move(state: AppState) -> AppState:
        changes = tuple((dict(state.draft.changes) | values).items())
        return replace(state, draft=replace(state.draft, changes=changes))

    return move


def set_corpus(text: Path) -> Move:
    """Learn from this text: a task that reads none gives way to the language model."""

    def move(state: AppState) -> AppState:
        is_read = TASKS[state.draft.values["task"]].needs_text
        return set_draft(text=text, **({} if is_read else {"task": "language_model"}))(state)

    return move


def set_runs_folder(folder: Path) -> Move:
    """Keep runs there."""
    return lambda state: replace(state, draft=replace(state.draft, folder=folder))


def watch_head(watched: WatchedHead) -> Move:
    """Show another head's attention while training."""
    return lambda state: replace(state, watched=watched)


def with_training(**facts: Any) -> Move:
    """The training has come so far."""
    return lambda state: replace(state, training=replace(state.training, **facts))


def new_training(facts: TrainingFacts) -> Move:
    """Another training: what was known of the one before is forgotten."""
    return lambda state: replace(state, training=facts)


def open_run(watched: WatchedHead) -> Move:
    """Look at the trained model, with the example and the head that were watched."""

    def move(state: AppState) -> AppState:
        facts = state.training
        assert facts.run is not None, "a run is opened once it was saved"
        return open_source(
            facts.run,
            inputs=ModelInput(text=facts.text, target=facts.target),
            selection=Selection(site=watched.site, layer=watched.layer, head=watched.head),
        )(state)

    return move
