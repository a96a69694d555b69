"""A cache that knows what its values weigh."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Lru(Generic[K, V]):
    """Keeps the values used last, up to `budget` bytes in all; the newest stays whatever it weighs. Any thread.

    A value that is dropped is closed by its last reference, so whoever still works with it is not disturbed.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """The value, now the one used last; None when it is not held."""
        with self._lock:
            if key not in self._held:
                return None
            self._held.move_to_end(key)
            return self._held[key][0]

    def put(self, key: K, value: V, n_bytes: int) -> None:
        with self._lock:
            self._held[key] = value, n_bytes
            self._held.move_to_end(key)
            while len(self._held) > 1 and self.n_bytes > self._budget:
                self._held.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._held.clear()

    @property
    def n_bytes(self) -> int:
        """Bytes held now."""
        return sum(size for _, size in self._held.values())
