"""Changes to a forward pass, as frozen records: what would the model do without this head?

An edit that changes nothing (a scale of 1, a patch with the same values) leaves every bit as it was.
Shape letters: B batch, H heads, N queries, D head size.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch

from core_model.config import AttentionSpec
from core_model.config.checks import require_choices
from core_model.errors import TraceError
from core_model.nn import masks
from core_model.nn.scores import HeadInputs
from core_model.sites import attention_activation


class Edit:
    """An edit changes activations, the attention of heads, or neither."""

    def activation(self, site: str, x: torch.Tensor) -> torch.Tensor | None:
        """The activation [B, ...] to go on with in place of x, which may be x itself; None where it does not apply."""
        return None

    def replaced_heads(self, site: str, layer: int, heads: HeadInputs) -> dict[int, HeadInputs]:
        """Inputs of single heads to compute attention from in place of the model's own, by head."""
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

    def activation(self, site: str, x: torch.Tensor) -> torch.Tensor | None:
        if site != attention_activation(self.site, self.layer, "head_output"):
            return None
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

    def __post_init__(self) -> None:
        require_choices(self)

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
    """Give a head another attention matrix: uniform over what it may see, the previous token, or the token itself.

    A token with no previous one that it may see looks at itself. What was put in is what the trace shows: scores of 0
    for uniform, and of one key alone for the others, under the mask of the model.
    """

    pattern: Literal["uniform", "previous_token", "identity"]

    def __post_init__(self) -> None:
        require_choices(self)

    def replaced_heads(self, site: str, layer: int, heads: HeadInputs) -> dict[int, HeadInputs]:
        if (site, layer) != (self.site, self.layer):
            return {}
        self.check_head(heads.q_BHND.shape[1])
        if self.pattern != "uniform" and not site.endswith(".self"):
            raise TraceError(
                f"pattern is {self.pattern!r}: no key of {site} is a query's own or the one before it, "
                "so only 'uniform' can be put in there"
            )
        size = heads.spec.head_size
        flat = AttentionSpec(n_heads=1, n_key_heads=1, head_size=size, scale=1.0, mask=heads.spec.mask)
        zero_B11D = heads.q_BHND.new_zeros(()).expand(heads.q_BHND.shape[0], 1, 1, size)
        own = HeadInputs(
            spec=flat,
            q_BHND=zero_B11D.expand(-1, -1, heads.n_queries, -1),
            k_BKMD=zero_B11D.expand(-1, -1, heads.n_keys, -1),
            query_start=heads.query_start,
            key_mask_BM=heads.key_mask_BM,
            chosen_key_N=None if self.pattern == "uniform" else self._chosen_keys(heads),
        )
        return {self.head: own}

    def _chosen_keys(self, heads: HeadInputs) -> torch.Tensor:
        """The key [N] each query looks at."""
        query_N = torch.arange(heads.n_queries, device=heads.q_BHND.device) + heads.query_start
        if self.pattern == "identity":
            return query_N
        before_N = (query_N - 1).clamp(min=0)
        return before_N.where(masks.sees(heads.spec.mask, query_N, before_N), query_N)


@dataclass(frozen=True, kw_only=True, eq=False)
class PatchSite(Edit):
    """Replace an activation by the one another trace kept under the same name."""

    name: str
    value: torch.Tensor = field(repr=False)

    def activation(self, site: str, x: torch.Tensor) -> torch.Tensor | None:
        if site != self.name:
            return None
        if self.value.shape != x.shape:
            raise TraceError(
                f"the value for {self.name} has shape {tuple(self.value.shape[1:])}: it is {tuple(x.shape[1:])} "
                "for this input, so patch from the same model and an input of the same length"
            )
        return self.value.to(x)
