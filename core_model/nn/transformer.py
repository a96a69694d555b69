"""The transformer: stacks of layers and an output head, all as its config says.

Shape letters: B batch, N positions, M encoder positions, C model width, V outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional

from core_model.config import (
    HeadSpec,
    LearnedPositions,
    ModelConfig,
    PatchEmbedding,
    Pooling,
    SinusoidalPositions,
    StackConfig,
    TablePositions,
    ZeroedTokens,
)
from core_model.errors import TraceError
from core_model.nn.attention import Attention
from core_model.nn.blocks import Layer
from core_model.nn.cache import KeyValueCache
from core_model.nn.convolution import NeighbourConvolution
from core_model.nn.embeddings import Patches, Tokens, make_embedding
from core_model.nn.feedforward import ACTIVATIONS
from core_model.nn.forward_pass import Pass
from core_model.nn.linear import Linear
from core_model.nn.norms import make_norm
from core_model.nn.positions import sinusoidal_table
from core_model.nn.product import product
from core_model.nn.tap import Tap
from core_model.nn.vectors import Vectors


class Stack(nn.Module):
    """One tower: embedding, layers, final norm, and perhaps a map to another width."""

    def __init__(self, name: str, config: StackConfig, *, d_memory: int | None = None, own_table: bool = True) -> None:
        super().__init__()
        self.name, self.config = name, config
        self.embedding = make_embedding(config, own_table=own_table)
        self.position = None
        if isinstance(config.position, LearnedPositions):
            n_rows = config.position.max_length + config.position.offset
            self.position = nn.Embedding(n_rows, config.d_position)
        self.distance = self.distance_norm = self.convolution = None
        if config.distances is not None:
            self.distance = nn.Embedding(config.distances.n_rows, config.d_model)
            self.distance_norm = make_norm(config.distances.norm, config.d_model) if config.distances.norm else None
        if config.convolution is not None:
            self.convolution = NeighbourConvolution(config.convolution, config.d_model)
        self.layers = nn.ModuleDict(
            {
                str(i): Layer(spec, config.d_model, d_memory)
                for i, spec in enumerate(config.layers)
                if config.weights_index(i) == i
            }
        )
        self.final_norm = make_norm(config.final_norm, config.d_model) if config.final_norm else None
        self.output = Linear(config.d_model, config.d_output, bias=False) if config.d_output else None

    def positions(self, start: int, n: int, like: torch.Tensor) -> torch.Tensor | None:
        """What absolute position adds to the embeddings [N, E] of tokens start ... start + n - 1; None without any."""
        spec = self.config.position
        if isinstance(spec, SinusoidalPositions):
            position_N = torch.arange(start, start + n, device="cpu")  # an Apple GPU has no float64
            table_NE = sinusoidal_table(spec, position_N, self.config.d_position)
            return table_NE.to(device=like.device, dtype=like.dtype)
        if self.position is None or spec is None:
            return None
        if start + n > spec.max_length:
            raise TraceError(
                f"the input has {start + n} tokens, but this model has positions for {spec.max_length} only: shorten it"
            )
        return self.position.weight[start + spec.offset : start + n + spec.offset]

    def layer(self, index: int) -> Layer:
        """The module whose weights layer `index` uses."""
        module = self.layers[str(self.config.weights_index(index))]
        assert isinstance(module, Layer)
        return module

    def forward(self, given: torch.Tensor, shared: Pass, type_ids_BN: torch.Tensor | None = None) -> torch.Tensor:
        """Hidden states [B, N, C] of what the embedding reads: token vectors, vectors, pixels or audio features."""
        start = 0 if shared.cache is None else shared.cache.length(f"{self.name}.self", 0)
        x_BNE = self.embedding.vectors(given)
        if isinstance(self.embedding, Patches) and self.position is not None:
            position_NE = self.embedding.positions(self.position.weight, (given.shape[-2], given.shape[-1]))
        else:
            position_NE = self.positions(start, x_BNE.shape[1], x_BNE)
        x_BNC = self.embedding(x_BNE, position_NE, type_ids_BN)
        tap = shared.tap
        if tap is not None:
            x_BNC = tap.activation(f"{self.name}.embedding", x_BNC)
        shared, first_BNC = replace(shared, distance_RC=self.distance_vectors()), x_BNC
        for index in range(self.config.n_layers):
            x_BNC = self.layer(index)(x_BNC, shared, stack=self.name, layer=index, bias_table=self._bias_table(index))
            if index == 0 and self.convolution is not None:
                x_BNC = self.convolution(first_BNC, x_BNC, shared.key_mask_BN)
        if self.final_norm is not None:
            x_BNC = self.final_norm(x_BNC)
        if tap is not None:
            x_BNC = tap.activation(f"{self.name}.final_hidden", x_BNC)
        return x_BNC if self.output is None else self.output(x_BNC)

    def distance_vectors(self) -> torch.Tensor | None:
        """DeBERTa's vectors of distances [R, C], normed; None in a stack without."""
        if self.distance is None:
            return None
        return self.distance.weight if self.distance_norm is None else self.distance_norm(self.distance.weight)

    def _bias_table(self, index: int) -> torch.Tensor | None:
        """The table of biases of another layer, where this layer uses one."""
        position = self.config.layers[index].attention.position
        if not isinstance(position, TablePositions) or position.from_layer is None:
            return None
        owner = self.layer(position.from_layer).attention
        assert isinstance(owner, Attention) and owner.position_bias is not None
        return owner.position_bias.weight


class Head(nn.Module):
    """Hidden states to logits: pick positions, norm, transform, map; see HeadSpec."""

    def __init__(self, spec: HeadSpec, stack: StackConfig) -> None:
        super().__init__()
        self.spec = spec
        patches = stack.embedding
        self.n_before_patches = (
            patches.n_class_tokens + patches.n_registers if isinstance(patches, PatchEmbedding) else 0
        )
        d_input = stack.d_model * spec.n_pooled
        self.norm = make_norm(spec.norm, d_input) if spec.norm else None
        self.transform = self.transform_norm = None
        if spec.transform is not None:
            d_pooled, d_input = d_input, spec.transform.d_output
            self.transform = Linear(d_pooled, d_input, bias=spec.transform.bias)
            if spec.transform.norm:
                self.transform_norm = make_norm(spec.transform.norm, d_input)
        self.output = _TiedOutput(spec) if spec.tied else Linear(d_input, spec.n_outputs, bias=spec.bias)

    def forward(
        self, x_BNC: torch.Tensor, table_VE: torch.Tensor | None, key_mask_BN: torch.Tensor | None = None
    ) -> torch.Tensor:
        x_BNC = pool(x_BNC, self.spec.pooling, self.n_before_patches, key_mask_BN)
        if self.norm is not None:
            x_BNC = self.norm(x_BNC)
        if self.transform is not None and self.spec.transform is not None:
            x_BNC = ACTIVATIONS[self.spec.transform.activation](self.transform(x_BNC))
            if self.transform_norm is not None:
                x_BNC = self.transform_norm(x_BNC)
        if isinstance(self.output, _TiedOutput):
            assert table_VE is not None
            logits_BNV = self.output(x_BNC, table_VE)
        else:
            logits_BNV = self.output(x_BNC)
        if self.spec.scale != 1:
            logits_BNV = logits_BNV * self.spec.scale
        if self.spec.soft_cap is not None:
            logits_BNV = logits_BNV / self.spec.soft_cap  # one step at a time: two of them are held, and not three
            logits_BNV = logits_BNV.tanh()
            logits_BNV = logits_BNV * self.spec.soft_cap
        return logits_BNV.squeeze(-1) if self.spec.task == "replaced_tokens" else logits_BNV


class _TiedOutput(nn.Module):
    """A linear map whose weight is the token table; only its bias is its own."""

    def __init__(self, spec: HeadSpec) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(spec.n_outputs)) if spec.bias else None

    def forward(self, x_BNE: torch.Tensor, table_VE: torch.Tensor) -> torch.Tensor:
        return product(x_BNE, table_VE, self.bias)


def pool(
    x_BNC: torch.Tensor, pooling: Pooling, n_before_patches: int = 0, key_mask_BN: torch.Tensor | None = None
) -> torch.Tensor:
    """The positions a head reads: all or the patches [B, N, C], or one vector an example [B, C], or two side by side
    [B, 2C]. key_mask_BN, which ends as x_BNC does, is False at padding: that is neither first nor last and has no share
    in a mean. TraceError for an example that is nothing else."""
    if key_mask_BN is not None and pooling in ("first", "last", "mean"):
        real_BN = key_mask_BN[:, -x_BNC.shape[1] :]
        if not real_BN.any(1).all():
            raise TraceError("an example is padding alone: there is nothing in it to pool")
        real = zip(x_BNC, real_BN, strict=True)
        return torch.cat([pool(x_NC[real_N][None], pooling) for x_NC, real_N in real])
    if pooling == "first":
        return x_BNC[:, 0]
    if pooling == "last":
        return x_BNC[:, -1]
    if pooling == "first_two":
        return x_BNC[:, :2].flatten(1)
    if pooling == "mean":
        return x_BNC.mean(1)
    if pooling == "each":
        return x_BNC
    if pooling == "patches":
        return x_BNC[:, n_before_patches:]
    mean_BC = x_BNC[:, n_before_patches:].mean(1)
    return mean_BC if pooling == "mean_patches" else torch.cat((x_BNC[:, 0], mean_BC), dim=-1)


class Transformer(nn.Module):
    """Encoder, decoder or both, or towers. A new one has PyTorch's default weights: initialise or load it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = Stack("encoder", config.encoder) if config.encoder else None
        d_memory = config.encoder.d_model if config.encoder else None
        own_table = not (config.shared_embedding and config.encoder)
        self.decoder = None
        if config.decoder:
            self.decoder = Stack("decoder", config.decoder, d_memory=d_memory, own_table=own_table)
        self.text = Stack("text", config.text) if config.text else None
        self.vision = Stack("vision", config.vision) if config.vision else None
        self.head = Head(config.head, config.output_stack) if config.head else None
        self.vectors = Vectors(config) if config.vectors else None

    @property
    def output_stack(self) -> Stack:
        """The stack whose hidden states are the model's output; of two towers the text's."""
        return self.stack(self.config.output_name)

    def stack(self, name: str) -> Stack:
        """A stack by its name. Raises TraceError naming those there are."""
        stack = getattr(self, name) if name in self.config.stacks else None
        if not isinstance(stack, Stack):
            raise TraceError(f"stack is {name!r}: this model has {', '.join(self.config.stacks)}")
        return stack

    def token_table(self, stack: Stack) -> torch.Tensor:
        """The token vectors [V, E] a stack reads: its own, or the encoder's where they share."""
        owner = stack if self.encoder is None or not self.config.shared_embedding else self.encoder
        assert isinstance(owner.embedding, Tokens) and owner.embedding.token is not None
        return owner.embedding.token.weight

    def forward(
        self,
        ids_BN: torch.Tensor,
        decoder_ids_BM: torch.Tensor | None = None,
        type_ids_BN: torch.Tensor | None = None,
        key_mask_BN: torch.Tensor | None = None,
        *,
        cache: KeyValueCache | None = None,
        tap: Tap | None = None,
    ) -> torch.Tensor:
        """Logits [B, N, V] ([B, V] from a head that pools, [B, N] where there is one a position), or hidden states
        [B, N, C] without a head.

        ids_BN is what the first stack reads: integers, vectors [B, N, E] in the place of token vectors, pixels
        [B, channels, rows, columns] or audio features [B, features, frames]. key_mask_BN is True at real tokens of the
        first stack.
        """
        hidden_BNC = self.hidden(ids_BN, decoder_ids_BM, type_ids_BN, key_mask_BN, cache=cache, tap=tap)
        if self.head is None:
            return hidden_BNC
        return self.logits(hidden_BNC, key_mask_BN if len(self.config.stacks) == 1 else None, tap=tap)

    def hidden(
        self,
        ids_BN: torch.Tensor,
        decoder_ids_BM: torch.Tensor | None = None,
        type_ids_BN: torch.Tensor | None = None,
        key_mask_BN: torch.Tensor | None = None,
        *,
        cache: KeyValueCache | None = None,
        tap: Tap | None = None,
    ) -> torch.Tensor:
        """Hidden states [B, N, C] of the output stack after its final norm, or as wide as its d_output."""
        assert not self.config.has_towers
        if self.encoder is None:
            return self.decode(ids_BN, None, type_ids_BN, key_mask_BN, cache=cache, tap=tap)
        memory_BMC = self.encode(ids_BN, type_ids_BN, key_mask_BN, tap=tap)
        if self.decoder is None:
            return memory_BMC
        if decoder_ids_BM is None:
            raise TraceError("this model has an encoder and a decoder: give decoder_ids (the target) as well")
        return self.decode(decoder_ids_BM, memory_BMC, None, key_mask_BN, cache=cache, tap=tap)

    def encode(
        self,
        ids_BN: torch.Tensor,
        type_ids_BN: torch.Tensor | None = None,
        key_mask_BN: torch.Tensor | None = None,
        *,
        tap: Tap | None = None,
    ) -> torch.Tensor:
        """The encoder's hidden states [B, N, C]."""
        assert self.encoder is not None
        x_BNE = self._vectors(self.encoder, ids_BN, key_mask_BN)
        return self.encoder(x_BNE, Pass(key_mask_BN=key_mask_BN, tap=tap), type_ids_BN)

    def decode(
        self,
        ids_BN: torch.Tensor,
        memory_BMC: torch.Tensor | None = None,
        type_ids_BN: torch.Tensor | None = None,
        key_mask_BN: torch.Tensor | None = None,
        *,
        cache: KeyValueCache | None = None,
        tap: Tap | None = None,
    ) -> torch.Tensor:
        """The decoder's hidden states [B, N, C]; key_mask_BN is of the encoder's tokens where it reads an encoder."""
        assert self.decoder is not None
        reads_encoder = memory_BMC is not None
        shared = Pass(
            key_mask_BN=None if reads_encoder else key_mask_BN,
            memory_BMC=memory_BMC,
            memory_mask_BM=key_mask_BN if reads_encoder else None,
            cache=cache,
            tap=tap,
        )
        return self.decoder(self._vectors(self.decoder, ids_BN, shared.key_mask_BN), shared, type_ids_BN)

    def towers(self, given: Mapping[str, torch.Tensor], *, tap: Tap | None = None) -> dict[str, torch.Tensor]:
        """Hidden states [B, N, C] of each tower that is given what it reads, by name, in the order they run."""
        stacks = {"text": self.text, "vision": self.vision}
        return {
            name: stack(self._vectors(stack, given[name], None), Pass(tap=tap))
            for name, stack in stacks.items()
            if stack is not None and name in given
        }

    def logits(
        self, hidden_BNC: torch.Tensor, key_mask_BN: torch.Tensor | None = None, *, tap: Tap | None = None
    ) -> torch.Tensor:
        """What the head says of hidden states; key_mask_BN is True at those of real tokens."""
        assert self.head is not None
        table_VE = self.token_table(self.output_stack) if self.head.spec.tied else None
        logits_BNV = self.head(hidden_BNC, table_VE, key_mask_BN)
        return logits_BNV if tap is None else tap.activation("logits", logits_BNV)

    def similarity(self, vectors: Mapping[str, torch.Tensor], *, tap: Tap | None = None) -> torch.Tensor | None:
        """How alike the vectors of text and image are [B, 1]; None where they are not compared or one is absent."""
        similarity_B1 = self.vectors.similarity(vectors) if self.vectors is not None else None
        return similarity_B1 if tap is None or similarity_B1 is None else tap.activation("logits", similarity_B1)

    def _vectors(self, stack: Stack, ids_BN: torch.Tensor, key_mask_BN: torch.Tensor | None) -> torch.Tensor:
        """Token vectors [B, N, E] of ids; everything else passes as it is."""
        if ids_BN.is_floating_point():
            return ids_BN
        x_BNE = functional.embedding(ids_BN, self.token_table(stack))
        zeroed = stack.config.tokens.zeroed
        return x_BNE if zeroed is None else _with_zeroed(x_BNE, ids_BN == zeroed.token, key_mask_BN, zeroed)


def _with_zeroed(
    x_BNE: torch.Tensor, zeroed_BN: torch.Tensor, key_mask_BN: torch.Tensor | None, spec: ZeroedTokens
) -> torch.Tensor:
    """Token vectors without some of them, the others scaled up for it; see ZeroedTokens."""
    real_BN = torch.ones_like(zeroed_BN) if key_mask_BN is None else key_mask_BN
    n_kept_B = (real_BN & ~zeroed_BN).sum(-1).clamp(min=1)
    scale_B = (1 - spec.trained_share) * real_BN.sum(-1) / n_kept_B
    return x_BNE.masked_fill(zeroed_BN[..., None], 0) * scale_B[:, None, None].to(x_BNE.dtype)
