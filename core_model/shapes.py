"""The names and shapes of all weights of a model, from its config alone.

This is how a config is held against a file before anything is allocated: sizes stay plain numbers, however large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from core_model.config import (
    AttentionSpec,
    AudioEmbedding,
    DisentangledPositions,
    FeedForwardSpec,
    HeadSpec,
    LearnedPositions,
    ModelConfig,
    NormSpec,
    PatchEmbedding,
    QueryKeyNorm,
    ResidualSpec,
    StackConfig,
    TablePositions,
    TokenEmbedding,
    VectorSpec,
)

Shape: TypeAlias = tuple[int, ...]
Named: TypeAlias = Iterator[tuple[str, Shape]]


def tensor_shapes(config: ModelConfig) -> dict[str, Shape]:
    """Name -> shape of every parameter of Transformer(config), in the order they run."""
    d_memory = config.encoder.d_model if config.encoder else None
    shapes: dict[str, Shape] = {}
    for name, stack in config.stacks.items():
        own_table = not (name == "decoder" and config.shared_embedding and config.encoder)
        shapes.update(_stack(name, stack, d_memory, own_table=own_table))
    if config.head is not None:
        shapes.update(_head(config.head, config.output_stack))
    if config.vectors is not None:
        for name, vector in config.vectors.by_tower.items():
            shapes.update(_vector(f"vectors.{name}", vector, config.stacks[name].d_model))
        numbers = {"scale": config.vectors.compared, "bias": config.vectors.bias}
        shapes.update({f"vectors.{name}": (1,) for name, is_there in numbers.items() if is_there})
    return shapes


def _linear(name: str, n_outputs: int, n_inputs: int, *, bias: bool) -> Named:
    yield f"{name}.weight", (n_outputs, n_inputs)
    if bias:
        yield f"{name}.bias", (n_outputs,)


def _norm(name: str, spec: NormSpec | None, *shape: int) -> Named:
    if spec is not None and spec.weight:
        yield f"{name}.weight", shape
        if spec.bias and spec.kind == "layer":
            yield f"{name}.bias", shape


def _stack(name: str, stack: StackConfig, d_memory: int | None, *, own_table: bool) -> Named:
    yield from _embedding(f"{name}.embedding", stack, own_table=own_table)
    if isinstance(stack.position, LearnedPositions):
        yield f"{name}.position.weight", (stack.position.max_length + stack.position.offset, stack.d_position)
    if stack.distances is not None:
        yield f"{name}.distance.weight", (stack.distances.n_rows, stack.d_model)
        yield from _norm(f"{name}.distance_norm", stack.distances.norm, stack.d_model)
    if stack.convolution is not None:
        n_inputs = stack.d_model // stack.convolution.n_groups
        yield from _convolution(f"{name}.convolution.mix", stack.d_model, n_inputs, stack.convolution.kernel_size)
        yield from _norm(f"{name}.convolution.norm", stack.convolution.norm, stack.d_model)
    for i, layer in enumerate(stack.layers):
        if stack.weights_index(i) != i:
            continue
        place = f"{name}.layers.{i}"
        yield from _attention(f"{place}.attention", layer.attention, stack.d_model, stack.d_model)
        yield from _residual(f"{place}.attention_residual", layer.attention_residual, stack.d_model)
        if layer.cross_attention is not None:
            assert d_memory is not None
            yield from _attention(f"{place}.cross_attention", layer.cross_attention, stack.d_model, d_memory)
            yield from _residual(f"{place}.cross_residual", layer.cross_residual, stack.d_model)
        yield from _feed_forward(f"{place}.feed_forward", layer.feed_forward, stack.d_model)
        yield from _residual(f"{place}.feed_forward_residual", layer.feed_forward_residual, stack.d_model)
    yield from _norm(f"{name}.final_norm", stack.final_norm, stack.d_model)
    if stack.d_output is not None:
        yield from _linear(f"{name}.output", stack.d_output, stack.d_model, bias=False)


def _embedding(name: str, stack: StackConfig, *, own_table: bool) -> Named:
    spec = stack.embedding
    if isinstance(spec, TokenEmbedding):
        if own_table:
            yield f"{name}.token.weight", (spec.vocab_size, spec.d_embedding)
        if spec.n_types:
            yield f"{name}.token_type.weight", (spec.n_types, stack.d_position)
        yield from _norm(f"{name}.norm", spec.norm, stack.d_position)
        if stack.has_projection:
            yield from _linear(f"{name}.projection", stack.d_model, spec.d_embedding, bias=spec.projection_bias)
    elif isinstance(spec, PatchEmbedding):
        for part, n_vectors in (("class_tokens", spec.n_class_tokens), ("registers", spec.n_registers)):
            if n_vectors:
                yield f"{name}.{part}", (n_vectors, stack.d_model)
        yield from _convolution(f"{name}.patches", stack.d_model, spec.n_channels, *spec.patch_size, bias=spec.bias)
        yield from _norm(f"{name}.norm", spec.norm, stack.d_model)
    elif isinstance(spec, AudioEmbedding):
        yield from _convolution(f"{name}.first", stack.d_model, spec.n_features, spec.kernel_size)
        yield from _convolution(f"{name}.second", stack.d_model, stack.d_model, spec.kernel_size)


def _convolution(name: str, n_outputs: int, n_inputs: int, *kernel: int, bias: bool = True) -> Named:
    yield f"{name}.weight", (n_outputs, n_inputs, *kernel)
    if bias:
        yield f"{name}.bias", (n_outputs,)


def _attention(name: str, spec: AttentionSpec, d_model: int, d_context: int) -> Named:
    yield from _linear(f"{name}.query", spec.d_query, d_model, bias=spec.query_bias)
    yield from _linear(f"{name}.key", spec.d_key, d_context, bias=spec.key_bias)
    yield from _linear(f"{name}.value", spec.d_key, d_context, bias=spec.value_bias)
    yield from _linear(f"{name}.output", d_model, spec.d_query, bias=spec.output_bias)
    if spec.query_key_norm is not None:
        for part, n_heads in (("query", spec.n_heads), ("key", spec.n_key_heads)):
            shape = _query_key_norm_shape(spec.query_key_norm, n_heads, spec.head_size)
            yield from _norm(f"{name}.{part}_norm", spec.query_key_norm.norm, *shape)
    if spec.sinks:
        yield f"{name}.sinks", (spec.n_heads,)
    if isinstance(spec.position, TablePositions) and spec.position.from_layer is None:
        yield f"{name}.position_bias.weight", (spec.position.n_buckets, spec.n_heads)
    if isinstance(spec.position, DisentangledPositions) and not spec.position.shared_maps:
        if spec.position.content_to_position:
            yield from _linear(f"{name}.distance_key", spec.d_key, d_model, bias=spec.position.key_bias)
        if spec.position.position_to_content:
            yield from _linear(f"{name}.distance_query", spec.d_query, d_model, bias=True)


def _query_key_norm_shape(spec: QueryKeyNorm, n_heads: int, head_size: int) -> Shape:
    return {"head": (head_size,), "heads": (n_heads, head_size), "width": (n_heads * head_size,)}[spec.over]


def _residual(name: str, spec: ResidualSpec, d_model: int) -> Named:
    yield from _norm(f"{name}.before", spec.before, d_model)
    yield from _norm(f"{name}.after", spec.after, d_model)
    yield from _norm(f"{name}.total", spec.total, d_model)
    if spec.learned_scale:
        yield f"{name}.learned_scale", (d_model,)


def _feed_forward(name: str, spec: FeedForwardSpec, d_model: int) -> Named:
    if not spec.d_hidden:
        return
    if spec.experts is None:
        yield from _two_maps(name, spec, d_model, spec.d_hidden)
        return
    yield from _linear(f"{name}.router", spec.experts.n_experts, d_model, bias=spec.experts.router_bias)
    for part, shape in _two_maps(f"{name}.experts", spec, d_model, spec.d_hidden):
        yield part, (spec.experts.n_experts, *shape)
    if spec.experts.d_shared:
        shared = replace(spec, d_hidden=spec.experts.d_shared, experts=None)
        yield from _two_maps(f"{name}.shared", shared, d_model, shared.d_hidden)
        yield f"{name}.shared_gate.weight", (1, d_model)


def _two_maps(name: str, spec: FeedForwardSpec, d_model: int, d_hidden: int) -> Named:
    yield from _linear(f"{name}.input", d_hidden, d_model, bias=spec.bias)
    if spec.gated:
        yield from _linear(f"{name}.gate", d_hidden, d_model, bias=spec.bias)
    yield from _linear(f"{name}.output", d_model, d_hidden, bias=spec.has_output_bias)


def _head(spec: HeadSpec, stack: StackConfig) -> Named:
    d_input = stack.d_model * spec.n_pooled
    yield from _norm("head.norm", spec.norm, d_input)
    if spec.transform is not None:
        yield from _linear("head.transform", spec.transform.d_output, d_input, bias=spec.transform.bias)
        d_input = spec.transform.d_output
        yield from _norm("head.transform_norm", spec.transform.norm, d_input)
    if not spec.tied:
        yield "head.output.weight", (spec.n_outputs, d_input)
    if spec.bias:
        yield "head.output.bias", (spec.n_outputs,)


def _vector(name: str, spec: VectorSpec, d_model: int) -> Named:
    if spec.attention is not None:
        yield f"{name}.pool.probe", (1, d_model)
        yield from _attention(f"{name}.pool.attention", spec.attention.attention, d_model, d_model)
        yield from _norm(f"{name}.pool.norm", spec.attention.norm, d_model)
        yield from _feed_forward(f"{name}.pool.feed_forward", spec.attention.feed_forward, d_model)
    yield from _norm(f"{name}.norm", spec.norm, d_model)
    if spec.d_output is not None:
        yield from _linear(f"{name}.projection", spec.d_output, d_model, bias=spec.bias)
