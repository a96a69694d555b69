"""What a forward pass tells to whoever listens. The base class listens to nothing and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from core_model.nn.scores import HeadInputs

PIECE_PRODUCTS = 1 << 34
"""Multiply-adds between two moments at which long work can be stopped: a good half second on two cores."""


class Tap:
    """Passed to `Transformer.forward`; called on the thread that computes, at every site of core_model.sites."""

    wants_logsumexp = False
    """Whether attention should return each row's log-sum-exp where its kernel computes it anyway."""

    def activation(self, site: str, x: torch.Tensor) -> torch.Tensor:
        """Called with every activation [B, ...]; what is returned goes on in its place."""
        return x

    def pause(self) -> None:
        """Called between the pieces of a long product; may raise to stop."""

    def attending(self, share: float) -> None:
        """Called between the pieces of a long attention with the share of it that is done; may raise to stop."""

    def attention(self, site: str, layer: int, heads: HeadInputs) -> None:
        """Called once an attention with what its scores are computed from."""

    def replaced_heads(self, site: str, layer: int, heads: HeadInputs) -> Mapping[int, HeadInputs]:
        """Heads whose attention is to be another than the computed one, by number: inputs of that head alone."""
        return {}
