"""A plan read by places and written by them again."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

import pytest

from core_model.checkpoint.families.plan import read_plan, side_by_side, write_stack
from core_model.config import LearnedPositions, NormSpec, RotaryPositions, RotaryScaling
from core_model.errors import ConfigError

PLACES = {
    "vocab_size": "words",
    "d_model": "width",
    "n_layers": "depth",
    "n_heads": "heads",
    "n_key_heads": "key_heads",
    "head_size": "head_width",
    "d_hidden": "hidden_width",
    "d_embedding": "table_width",
    "n_types": "kinds",
    "activation": "act",
    "eps": "epsilon",
    "max_length": "longest",
    "embedding_dropout": "drop_tokens",
    "attention_dropout": "drop_attention",
    "residual_dropout": "drop_branches",
}


@dataclass(frozen=True, kw_only=True)
class Keys:
    words: int = 23
    width: int = 30
    depth: int = 3
    heads: int = 6
    key_heads: int | None = 2
    head_width: int | None = 7
    hidden_width: int | None = 37
    table_width: int | None = 11
    kinds: int = 2
    act: str = "silu"
    epsilon: float = 0.5
    longest: int = 17
    drop_tokens: float = 0.1
    drop_attention: float = 0.2
    drop_branches: float = 0.3


def test_what_places_name_is_read_and_written_the_same() -> None:
    plan = read_plan(Keys(), PLACES)
    stack = plan.stack([plan.layer()] * plan.n_layers, position=LearnedPositions(max_length=17))
    assert write_stack(stack, PLACES) == asdict(Keys())


def test_what_goes_without_saying_is_the_articles() -> None:
    """Vaswani et al. 2017, 3.2.2 and 3.3: heads share the width, the feed-forward is four times as wide."""
    plan = read_plan(Keys(key_heads=None, head_width=None, hidden_width=None), PLACES)
    attention = plan.attention()
    assert (attention.n_key_heads, attention.head_size, plan.feed_forward().d_hidden) == (6, 5, 120)
    assert attention.scale == 5**-0.5


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        (Keys(heads=4, head_width=None), "heads is 4 and width is 30"),
        (Keys(key_heads=4), "key_heads is 4 .* must divide heads, 6"),
        (Keys(act="swish2"), "act is 'swish2'"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_by_the_names_of_the_keys(keys: Keys, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        read_plan(keys, PLACES)


def test_changes_win_over_the_keys() -> None:
    plan = read_plan(Keys(), PLACES, norm=NormSpec(bias=False), bias=False)
    layer = plan.layer(attention=plan.attention(bias=True, output_bias=False))
    assert layer.attention_residual.before == NormSpec(bias=False)
    assert (layer.attention.query_bias, layer.attention.output_bias, layer.feed_forward.bias) == (True, False, False)


def test_post_norm_norms_each_sum_and_nothing_else() -> None:
    """LayerNorm(x + Sublayer(x)), Vaswani et al. 2017, 3.1: the last sum is the output."""
    plan = read_plan(Keys(), PLACES, post_norm=True)
    stack = plan.stack([plan.layer()])
    residual = stack.layers[0].attention_residual
    assert (residual.before, residual.total, stack.final_norm) == (None, NormSpec(eps=0.5), None)
    assert stack.layers[0].feed_forward_residual == residual


def test_without_a_width_of_its_own_the_token_table_is_as_wide_as_the_model() -> None:
    assert read_plan(Keys(table_width=None), PLACES).embedding().d_embedding == 30


def test_side_by_side_both_read_the_norm_of_the_attention() -> None:
    layer = side_by_side(read_plan(Keys(), PLACES).layer())
    assert layer.parallel and layer.shared_norm
    assert layer.feed_forward_residual == replace(layer.attention_residual, before=None)


def test_stretched_positions_write_the_length_they_were_made_for() -> None:
    scaling = RotaryScaling(kind="yarn", factor=4.0, original_length=11)
    for position, length in ((RotaryPositions(n_rotated=4, scaling=scaling), 11), (RotaryPositions(n_rotated=4), 2048)):
        plan = read_plan(Keys(), PLACES, position=position)
        assert write_stack(plan.stack([plan.layer()]), PLACES)["longest"] == length
