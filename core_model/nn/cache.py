"""Keys and values of the tokens already seen, so that generation computes only the new ones.

Shape letters: B batch, K key heads, M keys, D head size.
"""

from __future__ import annotations

import torch


class KeyValueCache:
    """Grows by the new tokens at each step; cross-attention's keys are made once and read again.

    Keys are kept as they were turned: with rotary frequencies that depend on the length, a text that grows beyond the
    trained length needs a new cache. `core_model.generate` makes one.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[str, int], tuple[torch.Tensor, torch.Tensor]] = {}

    def copy(self) -> KeyValueCache:
        """One that grows by itself from here; what was kept is shared."""
        copy = KeyValueCache()
        copy._entries = dict(self._entries)
        return copy

    def has(self, site: str, layer: int) -> bool:
        """Whether this attention has been run before."""
        return (site, layer) in self._entries

    def length(self, site: str, layer: int) -> int:
        """How many tokens are kept for this attention."""
        entry = self._entries.get((site, layer))
        return 0 if entry is None else entry[0].shape[2]

    def read(self, site: str, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [B, K, M, D] kept for this attention."""
        return self._entries[site, layer]

    def append(
        self, site: str, layer: int, k_BKMD: torch.Tensor, v_BKMD: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Keep these too; all keys and values so far [B, K, M, D]."""
        if self.has(site, layer):
            old_k, old_v = self._entries[site, layer]
            k_BKMD, v_BKMD = torch.cat((old_k, k_BKMD), dim=2), torch.cat((old_v, v_BKMD), dim=2)
        self._entries[site, layer] = (k_BKMD, v_BKMD)
        return k_BKMD, v_BKMD
