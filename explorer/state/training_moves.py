"""What a person can do to the training form and to what is watched: functions from state to state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from core_model.results import RunInfo
from core_model.training.tasks import TASKS
from explorer.state.app_state import AppState, ModelInput, Notice, Selection
from explorer.state.moves import Move, open_source, with_recent
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
    """The training has come so far; once some of it is on disk, it is among the recent files."""

    def move(state: AppState) -> AppState:
        training = replace(state.training, **facts)
        run, recent = training.run, state.recent
        if training.saved_step is not None and run is not None and run not in recent:
            recent = with_recent(recent, run)
        return replace(state, training=training, recent=recent)

    return move


def with_killed_runs(runs: Mapping[Path, RunInfo]) -> Move:
    """These runs were killed: what was saved of them is offered, now and among the recent files."""

    def move(state: AppState) -> AppState:
        for folder, run in runs.items():
            text = f"The training of {folder.name} was cut off. It is saved up to {run.progress}."
            notice = Notice(severity="info", text=text, opens=folder)
            state = replace(state, recent=with_recent(state.recent, folder), notices=(*state.notices, notice))
        return state

    return move


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
