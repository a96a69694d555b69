"""The vectors that towers make of what they read, and how alike two are; see VectorSpec and VectorsSpec.

Shape letters: B batch, N positions, C model width, E width of a vector.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn import functional

from core_model.config import AttentionPooling, ModelConfig, VectorSpec
from core_model.nn.attention import Attention
from core_model.nn.feedforward import make_feed_forward
from core_model.nn.forward_pass import Pass
from core_model.nn.linear import Linear
from core_model.nn.norms import make_norm
from core_model.nn.tap import Tap


class AttentionPool(nn.Module):
    """One learned query over all positions; see AttentionPooling."""

    def __init__(self, spec: AttentionPooling, d_model: int) -> None:
        super().__init__()
        self.probe = nn.Parameter(torch.zeros(1, d_model))
        self.attention = Attention(spec.attention, d_model)
        self.norm = make_norm(spec.norm, d_model)
        self.feed_forward = make_feed_forward(spec.feed_forward, d_model)

    def forward(self, x_BNC: torch.Tensor, *, site: str, tap: Tap | None) -> torch.Tensor:
        """[B, N, C] -> [B, C]."""
        probe_B1C = self.probe.expand(len(x_BNC), -1, -1)
        y_B1C = self.attention(probe_B1C, x_BNC, shared=Pass(tap=tap), site=site)
        return (y_B1C + self.feed_forward(self.norm(y_B1C)))[:, 0]


class TowerVector(nn.Module):
    """One vector of a tower's hidden states; see VectorSpec."""

    def __init__(self, name: str, spec: VectorSpec, d_model: int) -> None:
        super().__init__()
        self.name, self.spec = name, spec
        self.pool = AttentionPool(spec.attention, d_model) if spec.attention else None
        self.norm = make_norm(spec.norm, d_model) if spec.norm else None
        self.projection = Linear(d_model, spec.d_output, bias=spec.bias) if spec.d_output else None

    def forward(self, x_BNC: torch.Tensor, given: torch.Tensor, *, tap: Tap | None = None) -> torch.Tensor | None:
        """[B, N, C] -> [B, E]; None for a text whose end token is not in `given`, what the tower read."""
        if self.pool is not None:
            x_BC = self.pool(x_BNC, site=f"{self.name}.pool", tap=tap)
        elif self.spec.pooling == "end":
            end_B = self._end_positions(given)
            if end_B is None:
                return None
            x_BC = x_BNC[torch.arange(len(x_BNC), device=end_B.device), end_B]
        else:
            x_BC = x_BNC[:, 0 if self.spec.pooling == "first" else -1]
        if self.norm is not None:
            x_BC = self.norm(x_BC)
        return x_BC if self.projection is None else self.projection(x_BC)

    def _end_positions(self, given: torch.Tensor) -> torch.Tensor | None:
        """Where the end token stands in each text [B]; None where one has none, or vectors were given for ids."""
        if given.is_floating_point():
            return None
        if self.spec.end_token is None:
            return given.argmax(-1)
        is_end_BN = given == self.spec.end_token
        return is_end_BN.int().argmax(-1) if is_end_BN.any(-1).all() else None


class Vectors(nn.Module):
    """The vector of each tower, and the two numbers their comparison has learned."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.vectors is not None
        towers = {
            name: TowerVector(name, vector, config.stacks[name].d_model)
            for name, vector in config.vectors.by_tower.items()
        }
        self.text, self.vision = towers.get("text"), towers.get("vision")
        self.scale = nn.Parameter(torch.zeros(1)) if config.vectors.compared else None
        self.bias = nn.Parameter(torch.zeros(1)) if config.vectors.bias else None

    def forward(
        self, hidden: Mapping[str, torch.Tensor], given: Mapping[str, torch.Tensor], *, tap: Tap | None = None
    ) -> dict[str, torch.Tensor]:
        """The vectors [B, E] of the towers that were `given` something, by name."""
        made: dict[str, torch.Tensor] = {}
        for name, tower in (("text", self.text), ("vision", self.vision)):
            vector_BE = tower(hidden[name], given[name], tap=tap) if tower is not None and name in hidden else None
            if vector_BE is not None:
                made[name] = vector_BE
        return made

    def similarity(self, vectors: Mapping[str, torch.Tensor]) -> torch.Tensor | None:
        """How alike text and image are [B, 1]; None where they are not compared, or one of them is absent."""
        if self.scale is None or len(vectors) < 2:
            return None
        cosine_B = functional.cosine_similarity(vectors["text"], vectors["vision"], dim=-1)
        similarity_B1 = self.scale.exp() * cosine_B[:, None]
        return similarity_B1 if self.bias is None else similarity_B1 + self.bias
