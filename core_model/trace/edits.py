"""Changes to a forward pass, as frozen records: what would the model do without this head?

An edit that changes nothing (a scale of 1, a patch with the same values) leaves every bit as it was.
Shape letters: B batch, H heads, N queries, M keys, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch

from core_model.errors import TraceError
from core_model.nn.attention import HeadInputs, visible_block
from core_model.sites import layer_site


class Edit:
    """An edit changes activations, attention matrices or neither."""

    def activation(self, site: str, x: torch.Tensor) -> torch.Tensor:
        """The activation [B, ...] to go on with in place of x."""
        return x

    def patterns(self, site: str, layer: int, heads: HeadInputs) -> dict[int, torch.Tensor]:
        """Attention matrices [B, N, M] to use in place of the computed ones, by head."""
        return {}


@dataclass(frozen=True, kw_only=True)
class _HeadEdit(Edit):
    """An edit of one head, addressed as everywhere: attention site, layer, head."""

    site: str
    layer: int
    head: int

    def check_head(self, n_heads: int) -> None:
        """Raise TraceError unless there is such a head."""
        if not 0 <= self.head < n_heads:
            raise TraceError(f"head is {self.head}: layer {self.layer} of {self.site} has heads 0 to {n_heads - 1}")


@dataclass(frozen=True, kw_only=True)
class _HeadOutputEdit(_HeadEdit):
    """An edit of what a head hands on."""

    def activation(self, site: str, x: torch.Tensor) -> torch.Tensor:
        stack, kind = self.site.split(".")
        if site != layer_site(stack, self.layer, "cross_head_output" if kind == "cross" else "head_output"):
            return x
        self.check_head(x.shape[1])
        edited_BHND = x.clone()
        edited_BHND[:, self.head] = self.edited_output(x[:, self.head])
        return edited_BHND

    def edited_output(self, out_BND: torch.Tensor) -> torch.Tensor:
        """This head's output after the edit."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class AblateHead(_HeadOutputEdit):
    """Replace a head's output by zero, or by its mean over the positions of this input."""

    by: Literal["zero", "mean"] = "zero"

    def edited_output(self, out_BND: torch.Tensor) -> torch.Tensor:
        if self.by == "zero":
            return torch.zeros_like(out_BND)
        return out_BND.mean(1, keepdim=True).expand_as(out_BND)


@dataclass(frozen=True, kw_only=True)
class ScaleHead(_HeadOutputEdit):
    """Multiply a head's output."""

    factor: float

    def edited_output(self, out_BND: torch.Tensor) -> torch.Tensor:
        return out_BND * self.factor


@dataclass(frozen=True, kw_only=True)
class ReplacePattern(_HeadEdit):
    """Give a head another attention matrix: uniform over what it may see, the previous token, or the token itself."""

    pattern: Literal["uniform", "previous_token", "identity"]

    def patterns(self, site: str, layer: int, heads: HeadInputs) -> dict[int, torch.Tensor]:
        if (site, layer) != (self.site, self.layer):
            return {}
        self.check_head(heads.q_BHND.shape[1])
        n, m = heads.n_queries, heads.n_keys
        device = heads.q_BHND.device
        if self.pattern == "uniform":
            seen_BNM = visible_block(heads, slice(0, n), torch.arange(m, device=device))[:, 0].float()
            pattern_BNM = seen_BNM / seen_BNM.sum(-1, keepdim=True).clamp(min=1)
        else:
            back = 1 if self.pattern == "previous_token" else 0
            key_N = (torch.arange(n, device=device) + heads.query_start - back).clamp(0, m - 1)
            pattern_BNM = torch.nn.functional.one_hot(key_N, m).float()[None]
        return {self.head: pattern_BNM.expand(heads.q_BHND.shape[0], n, m)}


@dataclass(frozen=True, kw_only=True, eq=False)
class PatchSite(Edit):
    """Replace an activation by the one another trace kept under the same name."""

    name: str
    value: torch.Tensor = field(repr=False)

    def activation(self, site: str, x: torch.Tensor) -> torch.Tensor:
        if site != self.name:
            return x
        if self.value.shape != x.shape:
            raise TraceError(
                f"the value for {self.name} has shape {tuple(self.value.shape[1:])}: "
                f"it is {tuple(x.shape[1:])} for this input, so patch from an input of the same length"
            )
        return self.value.to(x)
