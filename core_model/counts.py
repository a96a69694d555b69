"""What a config costs, before anything is allocated: parameters, arithmetic, memory. No torch.

One multiply-add counts as two floating-point operations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from core_model.config import AttentionSpec, DisentangledPositions, FeedForwardSpec, LayerSpec, ModelConfig, VectorSpec
from core_model.shapes import tensor_shapes
from core_model.sites import LAYER_ACTIVATIONS, layer_site


def n_parameters(config: ModelConfig) -> int:
    """Number of weights, shared ones counted once."""
    return sum(math.prod(shape) for shape in tensor_shapes(config).values())


def forward_flops(config: ModelConfig, n_tokens: int, n_decoder_tokens: int = 0) -> int:
    """Floating-point operations of one forward pass over one example: matrix products only, as is usual.

    Per attention: projections, then 2 x 2 x N x M x width for scores and weighted values (Vaswani et al. 2017, table
    1). Attention counts the keys that can be seen: a window of w keys a query, not all M.
    """
    total = 0
    lengths = _lengths(config, n_tokens, n_decoder_tokens)
    for name, stack in config.stacks.items():
        n = lengths[name]
        for layer in stack.layers:
            total += _layer_flops(layer, stack.d_model, n, lengths.get("encoder", 0))
        if stack.convolution is not None:
            total += 2 * n * stack.d_model**2 // stack.convolution.n_groups * stack.convolution.kernel_size
        total += 2 * n * stack.d_model * (stack.d_output or 0)
    if config.head is not None:
        n = lengths[config.output_name]
        width = config.output_stack.d_model
        if config.head.transform is not None:
            total += 2 * n * width * config.head.transform.d_output
            width = config.head.transform.d_output
        total += 2 * n * width * config.head.n_outputs
    for name, vector in (config.vectors.by_tower if config.vectors else {}).items():
        total += _vector_flops(vector, config.stacks[name].d_model, lengths[name])
    return total


def trace_bytes(config: ModelConfig, n_tokens: int, n_decoder_tokens: int = 0, *, dtype_bytes: int = 4) -> int:
    """Bytes a trace keeps: queries, keys and row normalisers of every attention, linear in length."""
    lengths = _lengths(config, n_tokens, n_decoder_tokens)
    total = 0
    for site, layers in config.attention_layers().items():
        n_queries, n_keys = _sides(site, lengths)
        for spec in layers:
            total += n_queries * (spec.d_query * dtype_bytes + 4 * spec.n_heads) + n_keys * spec.d_key * dtype_bytes
    return total


def matrix_bytes(config: ModelConfig, n_tokens: int, n_decoder_tokens: int = 0) -> int:
    """Bytes all attention matrices would take in float32: what is never held, for comparison."""
    lengths = _lengths(config, n_tokens, n_decoder_tokens)
    total = 0
    for site, layers in config.attention_layers().items():
        n_queries, n_keys = _sides(site, lengths)
        total += sum(4 * spec.n_heads * n_queries * n_keys for spec in layers)
    return total


def activation_bytes(
    config: ModelConfig, patterns: Sequence[str], n_tokens: int, n_decoder_tokens: int = 0, *, dtype_bytes: int = 4
) -> int:
    """Bytes of the activations that these names, with shell wildcards, would keep beside queries and keys.

    What a layer reads is what the one before it gave: kept under both names it is there once.
    """
    lengths = _lengths(config, n_tokens, n_decoder_tokens)
    total = 0
    for name, stack in config.stacks.items():
        n, given = lengths[name], f"{name}.embedding"
        sizes = {site: n * stack.d_model for site in (given, f"{name}.final_hidden")}
        stored_as: dict[str, str] = {}
        for index, layer in enumerate(stack.layers):
            axes = {"N": n, "M": n, "C": stack.d_model, "F": layer.feed_forward.d_hidden}
            cross_axes = axes | {"M": lengths.get("encoder", 0)}
            for key, site in LAYER_ACTIVATIONS.items():
                is_cross = key.startswith("cross_")
                spec = layer.cross_attention if is_cross else layer.attention
                if spec is not None:
                    heads = {"H": spec.n_heads, "K": spec.n_key_heads, "D": spec.head_size}
                    every_axis = (cross_axes if is_cross else axes) | heads
                    is_in_trace = key.removeprefix("cross_") in ("query", "key")
                    size = 0 if is_in_trace else math.prod(every_axis[letter] for letter in site.shape)
                    sizes[layer_site(name, index, key)] = size
            stored_as[layer_site(name, index, "residual_before")] = given
            given = layer_site(name, index, "residual_after")
        if stack.final_norm is None:
            stored_as[f"{name}.final_hidden"] = given
        kept = {stored_as.get(site, site) for site in sizes if any(fnmatchcase(site, each) for each in patterns)}
        total += sum(sizes[site] for site in kept)
    return total * dtype_bytes


def forward_bytes(config: ModelConfig, n_tokens: int, n_decoder_tokens: int = 0, *, dtype_bytes: int = 4) -> int:
    """Bytes a forward pass needs for a moment beside its weights: the widest sublayer's activations, and the logits.

    Attention adds nothing that grows with the square of the length; that of half precision is computed in float32.
    """
    lengths = _lengths(config, n_tokens, n_decoder_tokens)
    widest = 0
    for name, stack in config.stacks.items():
        n, n_memory = lengths[name], lengths.get("encoder", 0)
        for layer in stack.layers:
            feed_forward, crossed = layer.feed_forward, layer.cross_attention
            attention = _attention_bytes(layer.attention, n, n, dtype_bytes)
            crossing = _attention_bytes(crossed, n, n_memory, dtype_bytes) if crossed is not None else 0
            # Before and after the activation, multiplied by a gate or filled up to a size that products like.
            hidden = dtype_bytes * n * 3 * feed_forward.d_hidden
            widest = max(widest, dtype_bytes * 4 * n * stack.d_model + max(attention, crossing, hidden))
    return widest + _logit_bytes(config, lengths[config.output_name], dtype_bytes)


def _attention_bytes(spec: AttentionSpec, n_queries: int, n_keys: int, dtype_bytes: int) -> int:
    """What an attention holds for a moment: queries and what comes of them, twice while its blocks are joined and once
    more as rows; keys and values, twice while they are split into heads."""
    own, widened = n_queries * spec.d_query + n_keys * spec.d_key, 0 if dtype_bytes == 4 else 4
    return (4 * dtype_bytes + 2 * widened) * own


def _logit_bytes(config: ModelConfig, n: int, dtype_bytes: int) -> int:
    """Logits as they are computed, twice where they are scaled or capped, and in float32 as they are shown."""
    if config.head is None:
        return 0
    is_changed = config.head.scale != 1 or config.head.soft_cap is not None
    shown = 0 if dtype_bytes == 4 else 4
    return n * config.head.n_outputs * max(dtype_bytes * (1 + is_changed), dtype_bytes + shown)


def _lengths(config: ModelConfig, n_tokens: int, n_decoder_tokens: int) -> dict[str, int]:
    """By stack, in the order they run: n_tokens are of the first, n_decoder_tokens of the second."""
    return dict(zip(config.stacks, (n_tokens, n_decoder_tokens), strict=False))


def _sides(site: str, lengths: Mapping[str, int]) -> tuple[int, int]:
    """How many queries and keys a site has; what pools a tower is one query, of what was given something."""
    stack, kind = site.split(".")
    n = lengths[stack]
    return min(n, 1) if kind == "pool" else n, lengths["encoder"] if kind == "cross" else n


def _layer_flops(layer: LayerSpec, d_model: int, n: int, n_memory: int) -> int:
    total = _attention_flops(layer.attention, d_model, n, n) + n * _feed_forward_flops(layer.feed_forward, d_model)
    if layer.cross_attention is not None:
        total += _attention_flops(layer.cross_attention, d_model, n, n_memory)
    return total


def _attention_flops(spec: AttentionSpec, d_model: int, n_queries: int, n_keys: int) -> int:
    projections = 2 * d_model * (2 * n_queries * spec.d_query + 2 * n_keys * spec.d_key)
    if isinstance(spec.position, DisentangledPositions):
        projections += _distance_flops(spec, spec.position, d_model, n_queries, n_keys)
    n_pairs = n_queries * n_keys
    if spec.mask.window is not None:
        reach = spec.mask.window if spec.mask.causal else 2 * spec.mask.window + 1
        n_pairs = n_queries * min(n_keys, reach + spec.mask.n_global)
    return projections + 4 * n_pairs * spec.d_query


def _vector_flops(spec: VectorSpec, d_model: int, n: int) -> int:
    """Pooling n positions to one, and mapping it."""
    total = 2 * d_model * (spec.d_output or 0)
    if spec.attention is not None:
        total += _attention_flops(spec.attention.attention, d_model, 1, n)
        total += _feed_forward_flops(spec.attention.feed_forward, d_model)
    return total if n else 0


def _distance_flops(
    spec: AttentionSpec, position: DisentangledPositions, d_model: int, n_queries: int, n_keys: int
) -> int:
    """Mapping the vectors of distances, and their products with content."""
    n_terms = position.content_to_position + position.position_to_content
    meetings = position.content_to_position * n_queries + position.position_to_content * n_keys
    return 2 * 2 * position.span * spec.d_query * (n_terms * d_model + meetings)


def _feed_forward_flops(spec: FeedForwardSpec, d_model: int) -> int:
    """Operations for one token."""
    n_maps = 3 if spec.gated else 2
    if spec.experts is None:
        return 2 * n_maps * d_model * spec.d_hidden
    routed = spec.experts.n_active * spec.d_hidden + spec.experts.d_shared
    return 2 * d_model * (n_maps * routed + spec.experts.n_experts)
