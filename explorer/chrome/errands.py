"""Between commands and the lanes: an errand becomes an order, what comes of it changes the state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from explorer.controller import Controller
from explorer.state.app_state import Notice
from explorer.state.errands import Errand
from explorer.state.moves import add_notice
from explorer.state.outcome import Problem
from explorer.state.store import Store


class Errands:
    """Runs errands; a newer one of a kind takes the place of the older."""

    def __init__(self, store: Store, controller: Controller) -> None:
        self._store = store
        self._controller = controller

    def run(self, errand: Errand[Any]) -> None:
        """Have it done; the status line shows how far it is."""
        slot = f"errand.{type(errand.query).__name__}"
        self._controller.order(slot, errand.query, _Returned(self._store, errand))


@dataclass(frozen=True)
class _Returned:
    """A controller.Recipient that writes into the state."""

    store: Store
    errand: Errand[Any]

    def show_progress(self, fraction: float | None) -> None:
        """The status line shows it already."""

    def show_result(self, result: Any) -> None:
        self.store.settle(self.errand.learn(result))
        if self.errand.then is not None:
            self.store.apply(self.errand.then(result))

    def show_problem(self, problem: Problem) -> None:
        if problem.is_cancelled or problem.is_bug:  # the person did it, or the controller has told it already
            return
        text = f"{problem.what}: {problem.message}"
        self.store.settle(add_notice(Notice(severity="error", text=text, details=problem.details)))
