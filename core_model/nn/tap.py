"""What a forward pass tells to whoever listens. The base class listens to nothing and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from core_model.nn.attention import HeadInputs


class Tap:
    """Passed to `Transformer.forward`; called on the thread that computes, at every site of core_model.sites."""

    wants_logsumexp = False
    """Whether attention should return each row's log-sum-exp where its kernel computes it anyway."""

    def activation(self, site: str, x: torch.Tensor) -> torch.Tensor:
        """Called with every activation [B, ...]; what is returned goes on in its place."""
        return x

    def attention(self, site: str, layer: int, heads: HeadInputs) -> None:
        """Called once an attention with what its scores are computed from."""

    def pattern_edits(self, site: str, layer: int, heads: HeadInputs) -> dict[int, torch.Tensor]:
        """Attention matrices [B, N, M] to use instead of the computed ones, by head."""
        return {}
