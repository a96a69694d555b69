"""How stored tensors become ours and back, where a name alone does not do it.

A conversion works on whole tensors by slicing and transposing, which copies nothing; it never sees names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from core_model.checkpoint.shapes import Shape

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

    One of ours and not transposed: a plain rename. Vectors are never transposed.
    """

    transposed: bool = False

    def their_shapes(self, ours: Sequence[Shape]) -> tuple[Shape, ...]:
        """The outputs add up."""
        joined = (sum(shape[0] for shape in ours), *ours[0][1:])
        return (joined[::-1] if self._turns(len(joined)) else joined,)

    def to_ours(self, theirs: Sequence[torch.Tensor], shapes: Sequence[Shape]) -> list[torch.Tensor]:
        """Views of the stored tensor."""
        (stored,) = theirs
        turned = stored.T if self._turns(stored.dim()) else stored
        return list(turned.split([shape[0] for shape in shapes]))

    def to_theirs(self, ours: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """One tensor; a copy where there are several of ours."""
        import torch

        joined = torch.cat(list(ours)) if len(ours) > 1 else ours[0]
        return [joined.T if self._turns(joined.dim()) else joined]

    def _turns(self, n_dimensions: int) -> bool:
        return self.transposed and n_dimensions == 2


SAME = Joined()
TRANSPOSED = Joined(transposed=True)
