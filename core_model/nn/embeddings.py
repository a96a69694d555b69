"""What a stack reads, as the vectors its layers see: token ids, vectors, the pixels of an image, audio features.

Every embedding has two steps: `vectors`, of what is read, and the call, which adds what knows their positions.
Shape letters: B batch, N positions, E embedding width, C model width, K channels, Y rows, X columns, F audio features,
T frames.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from core_model.config import AudioEmbedding, PatchEmbedding, StackConfig, TokenEmbedding
from core_model.nn.feedforward import ACTIVATIONS
from core_model.nn.linear import Linear
from core_model.nn.norms import make_norm


class Embedding(nn.Module):
    """Vectors as they are given, plus absolute positions."""

    def vectors(self, given: torch.Tensor) -> torch.Tensor:
        """What positions are added to [B, N, E]."""
        return given

    def forward(
        self, x_BNE: torch.Tensor, position_NE: torch.Tensor | None, type_ids_BN: torch.Tensor | None
    ) -> torch.Tensor:
        """The vectors [B, N, C] that the first layer reads."""
        return x_BNE if position_NE is None else x_BNE + position_NE


class Tokens(Embedding):
    """Token vectors, scaled, plus types and absolute positions, normed, dropped out; projected where TokenEmbedding
    says."""

    def __init__(self, spec: TokenEmbedding, stack: StackConfig, *, own_table: bool) -> None:
        super().__init__()
        self.spec = spec
        self.token = nn.Embedding(spec.vocab_size, spec.d_embedding) if own_table else None
        self.token_type = nn.Embedding(spec.n_types, stack.d_position) if spec.n_types else None
        self.norm = make_norm(spec.norm, stack.d_position) if spec.norm else None
        self.projection = None
        if stack.has_projection:
            self.projection = Linear(spec.d_embedding, stack.d_model, bias=spec.projection_bias)

    def forward(
        self, x_BNE: torch.Tensor, position_NE: torch.Tensor | None, type_ids_BN: torch.Tensor | None
    ) -> torch.Tensor:
        if self.spec.scale != 1:
            x_BNE = x_BNE * self.spec.scale
        if self.spec.projects == "tokens":
            x_BNE = self._projected(x_BNE)
        if self.token_type is not None:
            x_BNE = x_BNE + (self.token_type.weight[0] if type_ids_BN is None else self.token_type(type_ids_BN))
        if position_NE is not None:
            x_BNE = x_BNE + position_NE
        if self.norm is not None:
            x_BNE = self.norm(x_BNE)
        if self.training and self.spec.dropout:
            x_BNE = functional.dropout(x_BNE, self.spec.dropout)
        return self._projected(x_BNE) if self.spec.projects == "sum" else x_BNE

    def _projected(self, x_BNE: torch.Tensor) -> torch.Tensor:
        return x_BNE if self.projection is None else self.projection(x_BNE)


class Patches(Embedding):
    """Class tokens and patches of an image, plus positions, registers put between; see PatchEmbedding."""

    def __init__(self, spec: PatchEmbedding, d_model: int) -> None:
        super().__init__()
        self.spec = spec
        size = spec.patch_size
        self.patches = nn.Conv2d(spec.n_channels, d_model, kernel_size=size, stride=size, bias=spec.bias)
        self.class_tokens = _learned(spec.n_class_tokens, d_model)
        self.registers = _learned(spec.n_registers, d_model)
        self.norm = make_norm(spec.norm, d_model) if spec.norm else None

    def vectors(self, given: torch.Tensor) -> torch.Tensor:
        """[B, K, Y, X] -> class tokens, then patches row by row [B, N, C]."""
        patches_BNC = self.patches(given).flatten(2).transpose(1, 2)
        if self.class_tokens is None:
            return patches_BNC
        return torch.cat((self.class_tokens.expand(len(given), -1, -1), patches_BNC), dim=1)

    def positions(self, learned_NC: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
        """The learned positions [N, C] of class tokens and patches, for an image of that size; see PatchEmbedding."""
        grid = self.spec.grid_of(size)
        if grid == self.spec.grid:
            return learned_NC
        class_NC, patches_NC = learned_NC.tensor_split([self.spec.n_class_tokens])
        # In any other layout than this, channels last, torch 2.13 gets a grid one column wide wrong.
        patches_BCYX = patches_NC.reshape(1, *self.spec.grid, -1).permute(0, 3, 1, 2)
        resized_CYX = functional.interpolate(
            patches_BCYX.float(), grid, mode="bicubic", antialias=self.spec.smooths_positions
        )[0]
        return torch.cat((class_NC, resized_CYX.flatten(1).T.to(class_NC)))

    def forward(
        self, x_BNE: torch.Tensor, position_NE: torch.Tensor | None, type_ids_BN: torch.Tensor | None
    ) -> torch.Tensor:
        x_BNC = x_BNE if position_NE is None else x_BNE + position_NE
        if self.registers is not None:
            class_BNC, patches_BNC = x_BNC.tensor_split([self.spec.n_class_tokens], dim=1)
            x_BNC = torch.cat((class_BNC, self.registers.expand(len(x_BNC), -1, -1), patches_BNC), dim=1)
        if self.norm is not None:
            x_BNC = self.norm(x_BNC)
        return functional.dropout(x_BNC, self.spec.dropout) if self.training and self.spec.dropout else x_BNC


class AudioFrames(Embedding):
    """Two convolutions over time, plus positions; see AudioEmbedding."""

    def __init__(self, spec: AudioEmbedding, d_model: int) -> None:
        super().__init__()
        self.spec = spec
        around = spec.kernel_size // 2
        self.first = nn.Conv1d(spec.n_features, d_model, spec.kernel_size, padding=around)
        self.second = nn.Conv1d(d_model, d_model, spec.kernel_size, stride=spec.stride, padding=around)

    def vectors(self, given: torch.Tensor) -> torch.Tensor:
        """[B, F, T] -> [B, N, C]."""
        activation = ACTIVATIONS[self.spec.activation]
        return activation(self.second(activation(self.first(given)))).transpose(1, 2)

    def forward(
        self, x_BNE: torch.Tensor, position_NE: torch.Tensor | None, type_ids_BN: torch.Tensor | None
    ) -> torch.Tensor:
        x_BNC = super().forward(x_BNE, position_NE, type_ids_BN)
        return functional.dropout(x_BNC, self.spec.dropout) if self.training and self.spec.dropout else x_BNC


def _learned(n_vectors: int, d_model: int) -> nn.Parameter | None:
    return nn.Parameter(torch.zeros(n_vectors, d_model)) if n_vectors else None


def make_embedding(stack: StackConfig, *, own_table: bool) -> Embedding:
    """The embedding a stack describes; without its own table one of tokens reads another stack's."""
    spec = stack.embedding
    if isinstance(spec, TokenEmbedding):
        return Tokens(spec, stack, own_table=own_table)
    if isinstance(spec, PatchEmbedding):
        return Patches(spec, stack.d_model)
    return AudioFrames(spec, stack.d_model) if isinstance(spec, AudioEmbedding) else Embedding()
