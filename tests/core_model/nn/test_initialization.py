"""Initialisations by the statistics their papers promise, and by what they do to the residual stream."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from core_model.config import (
    ExpertsSpec,
    FeedForwardSpec,
    ModelConfig,
    NormSpec,
    QueryKeyNorm,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import ConfigError
from core_model.nn.initialization import SCHEMES, Scheme, initialize
from core_model.nn.tap import Tap
from core_model.nn.transformer import Transformer
from core_model.trace import Inputs, run_trace
from tests.core_model import models
from tests.core_model.attention_cases import fill

D_MODEL = 128
RESIDUAL = ResidualSpec(before=NormSpec(kind="rms", unit_offset=True))


def wide_stack(n_layers: int = 1, *, feed_forward: FeedForwardSpec | None = None, cross: bool = False) -> StackConfig:
    """Layers wide enough for statistics, with every kind of norm."""
    attention = multi_head(D_MODEL, 4, query_key_norm=QueryKeyNorm(norm=NormSpec(), over="heads"), sinks=True)
    layer = models.layer(attention, cross=multi_head(D_MODEL, 4) if cross else None)
    feed_forward = feed_forward or FeedForwardSpec(d_hidden=4 * D_MODEL)
    layer = replace(layer, attention_residual=RESIDUAL, feed_forward=feed_forward)
    return StackConfig(
        d_model=D_MODEL,
        embedding=TokenEmbedding(vocab_size=500, d_embedding=64, n_types=2),
        layers=(layer,) * n_layers,
        final_norm=NormSpec(),
    )


def initialized(config: ModelConfig, scheme: Scheme = "xavier_uniform", seed: int = 0) -> Any:
    model = Transformer(config)
    initialize(model, scheme, torch.Generator().manual_seed(seed))
    return model


def decoder(*arguments, **options) -> ModelConfig:
    return ModelConfig(decoder=wide_stack(*arguments, **options))


def test_xavier_uniform_draws_query_key_and_value_each_within_its_own_bounds():
    """Glorot and Bengio 2010, eq. 16. One fused d -> 3d matrix would be too small by sqrt(2)."""
    attention = initialized(decoder()).decoder.layer(0).attention
    bound = (6 / (D_MODEL + D_MODEL)) ** 0.5
    for linear in (attention.query, attention.key, attention.value, attention.output):
        assert 0.99 * bound < linear.weight.abs().max() <= bound
        assert linear.weight.std().item() == pytest.approx(bound / 3**0.5, rel=0.02)
    fused = nn.MultiheadAttention(D_MODEL, 4).in_proj_weight
    assert attention.query.weight.std().item() == pytest.approx(2**0.5 * fused.std().item(), rel=0.03)


def test_xavier_of_other_shapes_follows_fan_in_plus_fan_out():
    model = initialized(decoder())
    for linear, fans in (
        (model.decoder.layer(0).feed_forward.input, D_MODEL + 4 * D_MODEL),
        (model.decoder.embedding.projection, 64 + D_MODEL),
    ):
        bound = (6 / fans) ** 0.5
        assert 0.98 * bound < linear.weight.abs().max() <= bound


def test_xavier_normal_has_the_same_variance():
    query = initialized(decoder(), "xavier_normal").decoder.layer(0).attention.query.weight
    assert query.std().item() == pytest.approx((2 / (2 * D_MODEL)) ** 0.5, rel=0.02)
    assert query.abs().max() > 3 * query.std()


@pytest.mark.parametrize("gated", [True, False])
def test_every_expert_is_drawn_like_a_network_of_its_own(gated):
    feed_forward = FeedForwardSpec(d_hidden=200, gated=gated, experts=ExpertsSpec(n_experts=3, n_active=1))
    experts = initialized(decoder(feed_forward=feed_forward)).decoder.layer(0).feed_forward.experts
    bound = (6 / (D_MODEL + 200)) ** 0.5
    for matrix in (*experts.input.weight, *experts.output.weight):
        assert 0.99 * bound < matrix.abs().max() <= bound
    assert not experts.input.bias.any()


@pytest.mark.parametrize("scheme", ["normal", "gpt2"])
def test_normal_schemes_have_a_standard_deviation_of_2_percent(scheme):
    model = initialized(decoder(), scheme)
    for weight in (model.decoder.embedding.token.weight, model.decoder.layer(0).attention.query.weight):
        assert weight.std().item() == pytest.approx(0.02, rel=0.02)


@pytest.mark.parametrize(("cross", "n_writers"), [(False, 2 * 6), (True, 3 * 6)])
def test_gpt2_divides_what_writes_to_a_stream_by_the_root_of_how_much_writes(cross, n_writers):
    """Radford et al. 2019, section 2.3. An encoder beside the decoder has a stream of its own."""
    config = ModelConfig(decoder=wide_stack(6, cross=cross), encoder=wide_stack(2) if cross else None)
    model = initialized(config, "gpt2")
    layer = model.decoder.layer(3)
    writers = [layer.attention.output, layer.feed_forward.output]
    writers += [layer.cross_attention.output] if cross else []
    for linear in writers:
        assert linear.weight.std().item() == pytest.approx(0.02 / n_writers**0.5, rel=0.03)
    if cross:
        assert model.encoder.layer(0).attention.output.weight.std().item() == pytest.approx(0.02 / 4**0.5, rel=0.03)
    assert layer.feed_forward.input.weight.std().item() == pytest.approx(0.02, rel=0.03)


@pytest.mark.parametrize(
    "feed_forward",
    [
        FeedForwardSpec(d_hidden=9),
        FeedForwardSpec(d_hidden=9, experts=ExpertsSpec(n_experts=2, n_active=1, d_shared=3)),
    ],
    ids=["dense", "experts"],
)
def test_zero_output_makes_every_layer_the_identity(feed_forward):
    model = initialized(decoder(3, feed_forward=feed_forward), "zero_output")
    trace = run_trace(model, Inputs(ids=[1, 2, 3]), keep=["*.residual_*"])
    for layer in range(3):
        before, after = (trace.activation(f"decoder.{layer}.residual_{end}") for end in ("before", "after"))
        assert (before == after).all()


def test_zero_output_gives_a_gradient_to_what_writes_to_the_stream():
    model = initialized(decoder(2), "zero_output")
    model(torch.tensor([[1, 2, 3]])).square().sum().backward()
    for layer in range(2):
        attention = model.decoder.layer(layer).attention
        assert attention.output.weight.grad.abs().max() > 0
        assert attention.query.weight.grad.abs().max() == 0


def growth_of_the_stream(scheme: Scheme) -> float:
    """Standard deviation after 12 layers over that before."""
    trace = run_trace(initialized(decoder(12), scheme), Inputs(ids=range(100)), keep=["*.residual_*"])
    return trace.activation("decoder.11.residual_after").std() / trace.activation("decoder.0.residual_before").std()


def test_the_stream_grows_least_from_zero_outputs_and_less_with_gpt2_than_without_its_division():
    growth = {scheme: growth_of_the_stream(scheme) for scheme in SCHEMES}
    assert growth["zero_output"] == 1
    assert growth["zero_output"] < growth["gpt2"] < growth["normal"]
    assert growth["xavier_uniform"] == pytest.approx(growth["xavier_normal"], rel=0.2)


def growth_of_the_gradient(scheme: Scheme) -> float:
    """Standard deviation of the gradient before 12 layers over that of one of deviation 1 given after them."""
    streams: dict[str, torch.Tensor] = {}

    class Streams(Tap):
        def activation(self, site: str, x: torch.Tensor) -> torch.Tensor:
            if site in ("decoder.0.residual_before", "decoder.11.residual_after"):
                streams[site] = x
                x.retain_grad()
            return x

    initialized(decoder(12), scheme)(torch.arange(100)[None], tap=Streams())
    after = streams["decoder.11.residual_after"]
    after.backward(torch.randn(after.shape, generator=torch.Generator().manual_seed(1)))
    before = streams["decoder.0.residual_before"].grad
    assert before is not None and after.grad is not None
    return (before.std() / after.grad.std()).item()


def test_the_gradient_grows_least_through_zero_outputs_and_less_with_gpt2_than_without_its_division():
    growth = {scheme: growth_of_the_gradient(scheme) for scheme in SCHEMES}
    assert growth["zero_output"] == 1
    assert 1 < growth["gpt2"] < growth["normal"]
    assert growth["xavier_uniform"] == pytest.approx(growth["xavier_normal"], rel=0.5)  # few vectors: a rough number


def test_drawn_as_one_fused_matrix_scores_are_half_as_wide_and_gradients_smaller_by_the_root_of_2():
    """Of inputs of variance 1. Drawn each on its own, a query has variance d * 2 / (d + d) = 1, and so has q.k/sqrt(D);
    as part of a d -> 3d matrix d * 2 / (d + 3d) = 1/2, and the product of two such 1/4.
    """
    x_NC, r_NC = torch.randn(2, 400, D_MODEL, generator=torch.Generator().manual_seed(2))
    attention = initialized(decoder()).decoder.layer(0).attention
    separate = [linear.weight for linear in (attention.query, attention.key, attention.value)]
    torch.manual_seed(0)
    fused = nn.MultiheadAttention(D_MODEL, 1).in_proj_weight.chunk(3)
    for (query, key, value), score_std, gradient_std in ((separate, 1, 1), (fused, 0.5, 0.5**0.5)):
        s_NM = (x_NC @ query.T) @ (x_NC @ key.T).T / D_MODEL**0.5
        assert s_NM.std().item() == pytest.approx(score_std, rel=0.05)
        assert (r_NC @ value).std().item() == pytest.approx(gradient_std, rel=0.03)  # of r . (x @ value.T), by x


@pytest.mark.parametrize("scheme", SCHEMES)
def test_norms_start_as_the_identity_and_other_vectors_at_zero(scheme):
    model: Any = Transformer(decoder())
    fill(model, seed=1)
    initialize(model, scheme, torch.Generator().manual_seed(0))
    layer = model.decoder.layer(0)
    assert (layer.attention.query_norm.weight == 1).all()
    assert (layer.attention_residual.before.weight == 0).all()  # its gain is 1 + weight
    assert (model.decoder.final_norm.weight == 1).all()
    for vector in (layer.attention.query.bias, layer.attention.sinks, model.decoder.final_norm.bias):
        assert (vector == 0).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_seed_gives_the_same_weights_and_another_seed_others(scheme):
    first, again, other = (initialized(decoder(), scheme, seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    query = "decoder.layers.0.attention.query.weight"
    assert not torch.equal(first[query], other[query])


def test_an_unknown_scheme_is_named_with_those_there_are():
    with pytest.raises(ConfigError, match=r"initialization is 'he'.*xavier_uniform.*zero_output"):
        initialize(Transformer(decoder()), "he")  # pyright: ignore[reportArgumentType]
