"""A cache that knows what its values weigh."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """Keeps the values used last, up to `budget` bytes in all; the newest stays whatever it weighs. Any thread.

    `let_go`, if given, is called with every value that is dropped.
    """

    def __init__(self, budget: int, let_go: Callable[[V], object] | None = None) -> None:
        self._budget = budget
        self._let_go = let_go
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()
        self._making: WeakValueDictionary[K, threading.Lock] = WeakValueDictionary()
        """Each lives as long as somebody makes its value or waits for it."""

    def get(self, key: K) -> V | None:
        """The value, now the one used last; None when it is not held."""
        with self._lock:
            if key not in self._held:
                return None
            self._held.move_to_end(key)
            return self._held[key][0]

    def get_or_make(self, key: K, make: Callable[[], V], weigh: Callable[[V], int] = lambda value: 1) -> V:
        """The value, made first if it is not held: once, however many threads ask. What `make` raises is passed on."""
        with self._lock:
            making = self._making.setdefault(key, threading.Lock())
        with making:
            value = self.get(key)
            if value is None:
                value = make()
                self.put(key, value, weigh(value))
            return value

    def put(self, key: K, value: V, n_bytes: int) -> None:
        """Hold a value in the place of the one that had its key."""
        with self._lock:
            dropped = [self._held.pop(key)] if key in self._held else []
            self._held[key] = value, n_bytes
            while len(self._held) > 1 and self.n_bytes > self._budget:
                dropped.append(self._held.popitem(last=False)[1])
        self._drop(dropped)

    def clear(self) -> None:
        """Drop every value."""
        with self._lock:
            dropped = list(self._held.values())
            self._held.clear()
        self._drop(dropped)

    @property
    def n_bytes(self) -> int:
        """Bytes held now."""
        return sum(size for _, size in self._held.values())

    def _drop(self, values: Iterable[tuple[V, int]]) -> None:
        if self._let_go is not None:
            for value, _ in values:
                self._let_go(value)
