"""Counts from the config alone against the model itself and PyTorch's own counters."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from core_model import counts
from core_model.config import (
    AttentionSpec,
    ConvolutionSpec,
    DisentangledPositions,
    DistanceTable,
    ExpertsSpec,
    FeedForwardSpec,
    HeadSpec,
    HeadTransform,
    LayerSpec,
    LearnedPositions,
    MaskSpec,
    ModelConfig,
    NormSpec,
    QueryKeyNorm,
    ResidualSpec,
    SinusoidalPositions,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import TraceError
from core_model.nn.transformer import Transformer
from core_model.trace import Inputs, run_trace
from core_model.trace import trace as trace_module
from tests.core_model.checkpoint.configs import WIDTH, compared_towers

PRE = ResidualSpec(before=NormSpec())


def _stack(layer: LayerSpec, n_layers: int, *, learned: bool = True, **options: object) -> StackConfig:
    position = LearnedPositions(max_length=64) if learned else SinusoidalPositions()
    embedding = TokenEmbedding(vocab_size=29, d_embedding=24)
    return StackConfig(d_model=24, embedding=embedding, layers=(layer,) * n_layers, position=position, **options)  # pyright: ignore[reportArgumentType]


def _layer(
    mask: MaskSpec, *, cross: bool = False, feed_forward: FeedForwardSpec | None = None, **options: object
) -> LayerSpec:
    return LayerSpec(
        attention=multi_head(24, 3, mask=mask, **options),
        attention_residual=PRE,
        feed_forward=feed_forward or FeedForwardSpec(d_hidden=40),
        feed_forward_residual=PRE,
        cross_attention=multi_head(24, 3) if cross else None,
        cross_residual=PRE,
    )


def _configs() -> dict[str, ModelConfig]:
    causal = MaskSpec(causal=True)
    experts = FeedForwardSpec(
        d_hidden=16, gated=True, bias=False, experts=ExpertsSpec(n_experts=4, n_active=2, d_shared=8)
    )
    qk_norm = QueryKeyNorm(norm=NormSpec(kind="rms"))
    head = HeadSpec(n_outputs=29, task="language_model", tied=True)
    masked = HeadSpec(
        n_outputs=29,
        task="masked_language_model",
        tied=True,
        bias=True,
        transform=HeadTransform(d_output=24, activation="gelu", norm=NormSpec()),
    )
    return {
        "decoder": ModelConfig(decoder=_stack(_layer(causal), 3, final_norm=NormSpec()), head=head),
        "encoder": ModelConfig(encoder=_stack(_layer(MaskSpec()), 2), head=masked),
        "disentangled": ModelConfig(
            encoder=_stack(
                _layer(MaskSpec(), position=DisentangledPositions(span=4, max_distance=9)),
                2,
                distances=DistanceTable(n_rows=8, norm=NormSpec()),
                convolution=ConvolutionSpec(kernel_size=3, activation="gelu", norm=NormSpec(), n_groups=2),
            ),
            head=masked,
        ),
        "both": ModelConfig(
            encoder=_stack(_layer(MaskSpec()), 2, learned=False),
            decoder=_stack(_layer(causal, cross=True), 2, learned=False),
            head=head,
            shared_embedding=True,
        ),
        "experts": ModelConfig(
            decoder=_stack(_layer(causal, feed_forward=experts, query_key_norm=qk_norm), 2, weights_of=(0, 0)),
            head=head,
        ),
    }


@pytest.mark.parametrize("name", _configs())
def test_parameters_are_those_of_the_model(name: str) -> None:
    config = _configs()[name]
    assert counts.n_parameters(config) == sum(p.numel() for p in Transformer(config).parameters())


@pytest.mark.parametrize("name", ["decoder", "encoder", "disentangled", "both"])
def test_operations_are_those_pytorch_counts(name: str) -> None:
    config = _configs()[name]
    model = Transformer(config).eval().requires_grad_(False)
    ids = torch.zeros(1, 17, dtype=torch.long)
    counter = FlopCounterMode(display=False)
    with counter:
        model(ids, ids[:, :11] if name == "both" else None)
    # The fused kernel's products are counted by no PyTorch version alike: they are added by their formula (2 products).
    attention = sum(
        4 * (11 if site.startswith("decoder") and name == "both" else 17) * n_keys * spec.d_query
        for site, layers in config.attention_layers().items()
        for spec in layers
        for n_keys in [11 if site == "decoder.self" and name == "both" else 17]
    )
    counted = sum(
        n for operator, n in counter.get_flop_counts()["Global"].items() if "scaled_dot_product" not in str(operator)
    )
    assert counts.forward_flops(config, 17, 11) == counted + attention


def test_a_tower_that_attention_pools_costs_one_query_more_and_its_maps() -> None:
    config = compared_towers()
    model = Transformer(config).eval().requires_grad_(False)
    given = {"text": torch.tensor([[1, 2, 3, 4, 3]]), "vision": torch.zeros(1, 3, 4, 6)}
    counter = FlopCounterMode(display=False)
    with counter:
        assert model.vectors is not None
        model.vectors(model.towers(given), given)
    uncounted = ("scaled_dot_product", "convolution")
    counted = sum(
        n
        for operator, n in counter.get_flop_counts()["Global"].items()
        if not any(name in str(operator) for name in uncounted)
    )
    attention = 4 * WIDTH * (5 * 5 + 7 * 7 + 1 * 7)
    assert counts.forward_flops(config, 5, 7) == counted + attention


def test_what_pools_a_tower_is_kept_as_one_query() -> None:
    config = compared_towers()
    trace = run_trace(Transformer(config), Inputs(ids=[1, 2, 3, 4, 3], pixels=np.zeros((3, 4, 6))))
    assert trace.logits is not None
    outputs = [trace.hidden, trace.logits, *trace.vectors.values()]
    assert trace.n_bytes - sum(one.nbytes for one in outputs) == counts.trace_bytes(config, 5, 7)
    assert counts.matrix_bytes(config, 5, 7) == 4 * (3 * 5 * 5 + 3 * 7 * 7 + 2 * 1 * 7)


def test_a_local_window_costs_its_window_not_the_length() -> None:
    full, local = (
        ModelConfig(decoder=_stack(_layer(MaskSpec(causal=True, window=window)), 1, learned=False))
        for window in (None, 8)
    )
    growth = counts.forward_flops(local, 2048) / counts.forward_flops(local, 1024)
    assert growth == pytest.approx(2.0)
    assert counts.forward_flops(full, 2048) / counts.forward_flops(full, 1024) > 3


@pytest.mark.parametrize("name", ["decoder", "encoder", "both"])
def test_trace_bytes_foretell_what_a_trace_keeps(name: str) -> None:
    config = _configs()[name]
    model = Transformer(config).eval()
    decoder_ids = [1] * 11 if name == "both" else None
    trace = run_trace(model, Inputs(ids=[1] * 17, decoder_ids=decoder_ids))
    outputs = trace.hidden.nbytes + (0 if trace.logits is None else trace.logits.nbytes)
    assert trace.n_bytes - outputs == counts.trace_bytes(config, 17, 11)


def test_matrix_bytes_are_those_of_every_head_in_float32() -> None:
    config = _configs()["both"]
    pairs = 2 * 17 * 17 + 2 * 11 * 11 + 2 * 11 * 17
    assert counts.matrix_bytes(config, 17, 11) == 4 * 3 * pairs
    assert math.prod((2, 3, 17, 17)) * 4 == counts.matrix_bytes(_configs()["encoder"], 17)


@pytest.mark.parametrize("name", ["decoder", "encoder", "both"])
def test_activation_bytes_foretell_what_is_kept(name: str) -> None:
    config = _configs()[name]
    patterns = ["*.value", "*.residual_after", "*.feed_forward_hidden", "*.embedding"]
    patterns += ["*.cross_head_output"] if name == "both" else []
    decoder_ids = [1] * 11 if name == "both" else None
    model = Transformer(config).eval()
    trace = run_trace(model, Inputs(ids=[1] * 17, decoder_ids=decoder_ids), keep=patterns)
    kept = sum(trace.activation(site).nbytes for site in trace.activations)
    assert counts.activation_bytes(config, patterns, 17, 11) == kept


@pytest.mark.parametrize("name", ["decoder", "encoder", "both"])
def test_what_is_kept_under_two_names_is_counted_once(name: str) -> None:
    config = _configs()[name]
    inputs = Inputs(ids=[1] * 17, decoder_ids=[1] * 11 if name == "both" else None)
    model = Transformer(config).eval()
    plain, full = run_trace(model, inputs), run_trace(model, inputs, keep=["*.*"])
    assert full.n_bytes - plain.n_bytes == counts.activation_bytes(config, ["*.*"], 17, 11)


def test_a_head_that_caps_its_logits_holds_them_twice() -> None:
    plain = _configs()["decoder"]
    assert plain.head is not None
    capped = dataclasses.replace(plain, head=dataclasses.replace(plain.head, soft_cap=30.0))
    more = counts.forward_bytes(capped, 50) - counts.forward_bytes(plain, 50)
    assert more == 4 * 50 * plain.head.n_outputs


def test_cross_attention_wider_than_all_else_counts() -> None:
    config = _configs()["both"]
    assert config.decoder is not None
    wide = AttentionSpec(n_heads=64, n_key_heads=64, head_size=32, scale=0.2)
    layers = tuple(dataclasses.replace(layer, cross_attention=wide) for layer in config.decoder.layers)
    crossing = dataclasses.replace(config, decoder=dataclasses.replace(config.decoder, layers=layers))
    assert counts.forward_bytes(crossing, 5000, 10) > 4 * 4 * 5000 * 64 * 32


def test_a_trace_that_cannot_fit_is_refused_with_numbers_before_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Transformer(_configs()["decoder"]).eval()
    monkeypatch.setattr(trace_module, "available_memory", lambda device: 1000)
    monkeypatch.setattr(model, "hidden", lambda *given, **named: pytest.fail("the model ran"))
    with pytest.raises(TraceError, match=r"17 tokens: its trace needs 0\.0 GB of memory and 0\.0 GB are free"):
        run_trace(model, Inputs(ids=[1] * 17))
