"""How sublayers join the residual stream, each arrangement written out as its formula.

Shape letters: B batch, N positions, C model width.
"""

from typing import Any

import pytest
import torch

from core_model.config import FeedForwardSpec, LayerSpec, MaskSpec, NormSpec, ResidualSpec, multi_head
from core_model.nn.blocks import Layer
from core_model.nn.forward_pass import Pass
from tests.core_model.attention_cases import fill

NORM = NormSpec()
D_MODEL = 8


def a_layer(
    attention: ResidualSpec, feed_forward: ResidualSpec, *, cross: ResidualSpec | None = None, **options
) -> Any:
    spec = LayerSpec(
        attention=multi_head(D_MODEL, 2, mask=MaskSpec(causal=True)),
        attention_residual=attention,
        cross_attention=multi_head(D_MODEL, 2) if cross else None,
        cross_residual=cross or ResidualSpec(),
        feed_forward=FeedForwardSpec(d_hidden=12, activation="gelu"),
        feed_forward_residual=feed_forward,
        **options,
    )
    layer = Layer(spec, D_MODEL, D_MODEL).eval()
    fill(layer, seed=0)
    return layer


def stream() -> torch.Tensor:
    return torch.randn(2, 5, D_MODEL, generator=torch.Generator().manual_seed(0))


def run(layer: Any, x_BNC: torch.Tensor, memory_BMC: torch.Tensor | None = None) -> torch.Tensor:
    return layer(x_BNC, Pass(memory_BMC=memory_BMC), stack="decoder", layer=0)


def parts(layer: Any) -> tuple[Any, ...]:
    """The sublayers and norms of a layer as functions."""
    return layer.attention, layer.feed_forward, layer.attention_residual, layer.feed_forward_residual


def test_pre_norm_adds_what_is_computed_from_the_normed_stream():
    layer = a_layer(ResidualSpec(before=NORM), ResidualSpec(before=NORM))
    attend, feed, first, second = parts(layer)
    x = stream()
    with torch.no_grad():
        y = x + attend(first.before(x))
        y = y + feed(second.before(y))
        torch.testing.assert_close(run(layer, x), y)


def test_post_norm_norms_the_sum_as_the_article_does():
    """Vaswani et al. 2017, section 3.1: LayerNorm(x + Sublayer(x))."""
    layer = a_layer(ResidualSpec(total=NORM), ResidualSpec(total=NORM))
    attend, feed, first, second = parts(layer)
    x = stream()
    with torch.no_grad():
        y = first.total(x + attend(x))
        y = second.total(y + feed(y))
        torch.testing.assert_close(run(layer, x), y)


def test_sandwich_norms_before_and_after_the_sublayer():
    sandwich = ResidualSpec(before=NORM, after=NORM)
    layer = a_layer(sandwich, sandwich)
    attend, feed, first, second = parts(layer)
    x = stream()
    with torch.no_grad():
        y = x + first.after(attend(first.before(x)))
        y = y + second.after(feed(second.before(y)))
        torch.testing.assert_close(run(layer, x), y)


@pytest.mark.parametrize("shared", [True, False])
def test_parallel_sublayers_read_the_same_stream(shared):
    """GPT-J: one norm for both; GPT-NeoX: one each."""
    layer = a_layer(
        ResidualSpec(before=NORM),
        ResidualSpec() if shared else ResidualSpec(before=NORM),
        parallel=True,
        shared_norm=shared,
    )
    attend, feed, first, second = parts(layer)
    x = stream()
    with torch.no_grad():
        read = first.before(x) if shared else second.before(x)
        torch.testing.assert_close(run(layer, x), x + attend(first.before(x)) + feed(read))


def test_cross_attention_stands_between_self_attention_and_feed_forward():
    layer = a_layer(ResidualSpec(total=NORM), ResidualSpec(total=NORM), cross=ResidualSpec(total=NORM))
    attend, feed, first, second = parts(layer)
    x = stream()
    memory = torch.randn(2, 7, D_MODEL, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        y = first.total(x + attend(x))
        y = layer.cross_residual.total(y + layer.cross_attention(y, memory))
        y = second.total(y + feed(y))
        torch.testing.assert_close(run(layer, x, memory), y)


def test_a_branch_is_scaled_before_it_is_added():
    layer = a_layer(ResidualSpec(before=NORM, scale=0.22), ResidualSpec(before=NORM, scale=0.5))
    attend, feed, first, second = parts(layer)
    x = stream()
    with torch.no_grad():
        y = x + 0.22 * attend(first.before(x))
        y = y + 0.5 * feed(second.before(y))
        torch.testing.assert_close(run(layer, x), y)


def test_dropout_of_a_branch_is_applied_in_training_only():
    layer = a_layer(ResidualSpec(before=NORM, dropout=0.5), ResidualSpec(before=NORM, dropout=0.5))
    with torch.no_grad():
        assert torch.equal(run(layer, stream()), run(layer, stream()))
        layer.train()
        assert not torch.equal(run(layer, stream()), run(layer, stream()))
