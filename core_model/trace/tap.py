"""The tap of a trace: collects what attention is computed from and what was asked for, applies edits, heeds cancel."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

import torch

from core_model.cancel import CancelToken, Progress
from core_model.errors import TraceError
from core_model.nn.scores import HeadInputs
from core_model.nn.tap import Tap
from core_model.trace.edits import Edit


class CollectingTap(Tap):
    """Keeps references only: memory grows linearly with length. Lives on the thread that computes."""

    wants_logsumexp = True

    def __init__(
        self,
        *,
        keep: Sequence[str] = (),
        edits: Sequence[Edit] = (),
        cancel: CancelToken | None = None,
        progress: Progress | None = None,
        n_attentions: int = 1,
    ) -> None:
        self.heads: dict[tuple[str, int], HeadInputs] = {}
        self.activations: dict[str, torch.Tensor] = {}
        self._keep, self._edits = tuple(keep), tuple(edits)
        self._unused = list(edits)
        self._told: list[str] = []
        self._cancel, self._progress, self._n_attentions = cancel, progress, n_attentions

    def activation(self, site: str, x: torch.Tensor) -> torch.Tensor:
        """Apply the edits of this site, then keep the result when it was asked for."""
        self.pause()
        self._told.append(site)
        for edit in self._edits:
            edited = edit.activation(site, x)
            self._note_use(edit, edited is not None)
            x = x if edited is None else edited
        if any(fnmatchcase(site, pattern) for pattern in self._keep):
            self.activations[site] = x
        return x

    def pause(self) -> None:
        """Heed cancel."""
        if self._cancel is not None:
            self._cancel.check()

    def attending(self, share: float) -> None:
        """Heed cancel and tell progress within a long attention."""
        self.pause()
        if self._progress is not None:
            self._progress((len(self.heads) + share) / self._n_attentions)

    def attention(self, site: str, layer: int, heads: HeadInputs) -> None:
        """Keep queries, keys and row log-sum-exps of this attention."""
        self.heads[site, layer] = heads
        if self._progress is not None:
            self._progress(len(self.heads) / self._n_attentions)

    def replaced_heads(self, site: str, layer: int, heads: HeadInputs) -> dict[int, HeadInputs]:
        """What the edits of this attention put in the place of its heads."""
        replaced: dict[int, HeadInputs] = {}
        for edit in self._edits:
            by_this = edit.replaced_heads(site, layer, heads)
            self._note_use(edit, bool(by_this))
            replaced |= by_this
        return replaced

    def check_all_used(self) -> None:
        """Raise TraceError when an edit or `keep` names something this pass has not, once it is over."""
        if self._unused:
            raise TraceError(f"{self._unused[0]} changed nothing: this model has no such attention or activation")
        for pattern in self._keep:
            if not any(fnmatchcase(site, pattern) for site in self._told):
                nearest = ", ".join(get_close_matches(pattern, self._told, cutoff=0.0))
                raise TraceError(
                    f"keep names {pattern!r}, and this model has no such activation for this input: "
                    f"the nearest are {nearest}"
                )

    def _note_use(self, edit: Edit, is_used: bool) -> None:
        if is_used:
            self._unused = [unused for unused in self._unused if unused is not edit]
