"""How stored tensors become ours and back, where a name alone does not do it.

A conversion works on whole tensors by slicing and transposing, which mostly copies nothing; it never sees names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from core_model.shapes import Shape

if TYPE_CHECKING:
    import torch


class Conversion(Protocol):
    """A two-way map between the tensors of one table row: theirs, as stored, and ours."""

    def their_shapes(self, ours: Sequence[Shape]) -> tuple[Shape, ...]:
        """Shapes of their tensors, from ours."""
        ...

    def to_ours(self, theirs: Sequence[torch.Tensor], shapes: Sequence[Shape]) -> list[torch.Tensor]:
        """Our tensors, of the given shapes."""
        ...

    def to_theirs(self, ours: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Their tensors."""
        ...


@dataclass(frozen=True, kw_only=True)
class Joined:
    """One stored tensor is ours one after another along the outputs; `transposed` when it is stored [in, out].

    One of ours and not transposed: a plain rename. With `n_groups`, each group of outputs has a share of every one of
    ours in turn: with a group a head, query, key and value of head 0, then of head 1 (GPT-NeoX, BLOOM). Outputs are the
    first axis, or the second where `axis` is 1, behind the experts. Biases, which have no inputs, are never transposed.
    """

    n_groups: int = 1
    transposed: bool = False
    axis: int = 0

    def their_shapes(self, ours: Sequence[Shape]) -> tuple[Shape, ...]:
        """The outputs add up."""
        first, n_outputs = ours[0], sum(shape[self.axis] for shape in ours)
        before, inputs = first[: self.axis], first[self.axis + 1 :]
        return ((*before, *inputs, n_outputs) if self._turns(len(first)) else (*before, n_outputs, *inputs),)

    def to_ours(self, theirs: Sequence[torch.Tensor], shapes: Sequence[Shape]) -> list[torch.Tensor]:
        """Views of the stored tensor; copies where there are groups."""
        (stored,) = theirs
        groups = self._turned(stored).unflatten(self.axis, (self.n_groups, -1))
        shares = groups.split([shape[self.axis] // self.n_groups for shape in shapes], dim=self.axis + 1)
        return [share.flatten(self.axis, self.axis + 1) for share in shares]

    def to_theirs(self, ours: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """One tensor; a copy where there are several of ours."""
        import torch

        if len(ours) == 1:
            return [self._turned(ours[0])]
        groups = [tensor.unflatten(self.axis, (self.n_groups, -1)) for tensor in ours]
        return [self._turned(torch.cat(groups, dim=self.axis + 1).flatten(self.axis, self.axis + 1))]

    def _turned(self, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.mT if self._turns(tensor.dim()) else tensor

    def _turns(self, n_dimensions: int) -> bool:
        return self.transposed and n_dimensions == self.axis + 2


@dataclass(frozen=True, kw_only=True)
class Stacked:
    """Stored tensors of one shape, an expert or a head each, are one of ours with one axis more."""

    def their_shapes(self, ours: Sequence[Shape]) -> tuple[Shape, ...]:
        """Ours without its first axis, as often as that is long."""
        (stacked,) = ours
        return (stacked[1:],) * stacked[0]

    def to_ours(self, theirs: Sequence[torch.Tensor], shapes: Sequence[Shape]) -> list[torch.Tensor]:
        """One tensor, a copy."""
        import torch

        return [torch.stack(list(theirs))]

    def to_theirs(self, ours: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Copies, which no longer share memory."""
        (stacked,) = ours
        return [tensor.clone() for tensor in stacked]


@dataclass(frozen=True, kw_only=True)
class InterleavedHeads:
    """A stored map whose outputs are heads in pairs, 0 and 1 of a pair side by side; in ours the 0s come before the 1s.

    Rotary positions then pair the halves of a head, with the same scores.
    """

    n_heads: int

    def their_shapes(self, ours: Sequence[Shape]) -> tuple[Shape, ...]:
        """The same."""
        return tuple(ours)

    def to_ours(self, theirs: Sequence[torch.Tensor], shapes: Sequence[Shape]) -> list[torch.Tensor]:
        """Copies."""
        return [stored.unflatten(0, (self.n_heads, -1, 2)).transpose(1, 2).flatten(0, 2) for stored in theirs]

    def to_theirs(self, ours: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Copies."""
        return [tensor.unflatten(0, (self.n_heads, 2, -1)).transpose(1, 2).flatten(0, 2) for tensor in ours]


@dataclass(frozen=True, kw_only=True)
class Wrapped:
    """A stored tensor is one of ours with an axis of length 1 in front."""

    def their_shapes(self, ours: Sequence[Shape]) -> tuple[Shape, ...]:
        """One axis more."""
        return tuple((1, *shape) for shape in ours)

    def to_ours(self, theirs: Sequence[torch.Tensor], shapes: Sequence[Shape]) -> list[torch.Tensor]:
        """Views."""
        return [stored[0] for stored in theirs]

    def to_theirs(self, ours: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Views."""
        return [tensor[None] for tensor in ours]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Stored tensors [1, n, C] are ours [sum of n, C] one after another; `counts` are their n."""

    counts: tuple[int, ...]

    def their_shapes(self, ours: Sequence[Shape]) -> tuple[Shape, ...]:
        """Some of our rows each, with one axis in front."""
        ((_, *rest),) = ours
        return tuple((1, count, *rest) for count in self.counts)

    def to_ours(self, theirs: Sequence[torch.Tensor], shapes: Sequence[Shape]) -> list[torch.Tensor]:
        """One tensor, a copy."""
        import torch

        return [torch.cat([stored[0] for stored in theirs])]

    def to_theirs(self, ours: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Copies, which no longer share memory."""
        (rows,) = ours
        return [part[None].clone() for part in rows.split(list(self.counts))]


@dataclass(frozen=True, kw_only=True)
class Averaged:
    """The mean of two stored linear maps is one of ours that reads their inputs side by side; of biases, their mean.

    Going back, the second bias is 0: only the sum of the two is known.
    """

    def their_shapes(self, ours: Sequence[Shape]) -> tuple[Shape, ...]:
        """Half the inputs each."""
        (shape,) = ours
        return ((shape[0], shape[1] // 2),) * 2 if len(shape) == 2 else (shape, shape)

    def to_ours(self, theirs: Sequence[torch.Tensor], shapes: Sequence[Shape]) -> list[torch.Tensor]:
        """One tensor, a copy."""
        import torch

        first, second = theirs
        return [(torch.cat((first, second), dim=1) if first.dim() == 2 else first + second) / 2]

    def to_theirs(self, ours: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Copies."""
        (whole,) = ours
        if whole.dim() == 1:
            return [whole * 2, whole.new_zeros(whole.shape)]
        return [part * 2 for part in whole.chunk(2, dim=1)]


@dataclass(frozen=True, kw_only=True)
class FirstRow:
    """A stored vector [C] is the only row of ours [1, C]."""

    def their_shapes(self, ours: Sequence[Shape]) -> tuple[Shape, ...]:
        """One axis less."""
        return tuple(shape[1:] for shape in ours)

    def to_ours(self, theirs: Sequence[torch.Tensor], shapes: Sequence[Shape]) -> list[torch.Tensor]:
        """Views."""
        return [stored[None] for stored in theirs]

    def to_theirs(self, ours: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Views."""
        return [tensor[0] for tensor in ours]


SAME = Joined()
TRANSPOSED = Joined(transposed=True)
WRAPPED = Wrapped()
FIRST_ROW = FirstRow()
