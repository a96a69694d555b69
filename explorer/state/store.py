"""The one place where the state changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, TypeAlias

from psygnal import Signal

from explorer.state.app_state import AppState

_HISTORY_LIMIT = 200
_UNDONE = "source", "inputs", "is_input_kept", "selection", "display", "model", "trace"
"""Fields that undo brings back: intents, with the facts that belonged to them; but for tokens, which weigh 250 bytes
each and are asked again where they are not known by then."""
_Step: TypeAlias = dict[str, Any]
"""Their values."""


class Store:
    """Holds the AppState, tells watchers (new, old) when it changes, remembers what to undo. UI thread only."""

    changed: ClassVar[Signal] = Signal(AppState, AppState, reemission="queued")

    def __init__(self, state: AppState | None = None) -> None:
        self._state = state or AppState()
        self._past: deque[_Step] = deque(maxlen=_HISTORY_LIMIT)
        self._future: list[_Step] = []

    @property
    def state(self) -> AppState:
        return self._state

    @property
    def can_undo(self) -> bool:
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        return bool(self._future)

    def watch(self, watcher: Callable[[AppState, AppState], None]) -> None:
        """Call `watcher(new, old)` after every change, in the order of the changes."""
        self.changed.connect(watcher)

    def update(self, **changes: Any) -> None:
        """Change what the person asked for; undo takes it back."""
        self.apply(lambda state: replace(state, **changes))

    def apply(self, move: Callable[[AppState], AppState]) -> None:
        """The same with a function from state to state."""
        after = move(self._state)
        if after == self._state:
            return
        self._past.append(self._step)
        self._future.clear()
        self._set(after)

    def settle(self, move: Callable[[AppState], AppState]) -> None:
        """Write facts and passing things (an answer, the cell under the mouse): never a step of undo."""
        after = move(self._state)
        if after != self._state:
            self._set(after)

    def undo(self) -> None:
        """Go one step back; nothing when there is none."""
        if self._past:
            self._future.append(self._step)
            self._restore(self._past.pop())

    def redo(self) -> None:
        """Take the last undo back; nothing when there is none."""
        if self._future:
            self._past.append(self._step)
            self._restore(self._future.pop())

    @property
    def _step(self) -> _Step:
        return {name: getattr(self._state, name) for name in _UNDONE}

    def _restore(self, then: _Step) -> None:
        self._set(replace(self._state, **then))

    def _set(self, after: AppState) -> None:
        before, self._state = self._state, after
        self.changed.emit(after, before)
