"""A TrainControl that tells whether the training waits at this moment, so that tests need not guess."""

from __future__ import annotations

from core_model.cancel import CancelToken
from core_model.training.control import TrainControl


class WatchedControl(TrainControl):
    """`holding` while no update is under way and none follows before it is asked for."""

    _is_asked = False

    @property
    def holding(self) -> bool:
        with self._changed:
            return self._is_asked and self.paused and not self._n_single

    def admit(self, cancel: CancelToken) -> bool:
        with self._changed:
            self._is_asked = True
            try:
                return super().admit(cancel)
            finally:
                self._is_asked = False
