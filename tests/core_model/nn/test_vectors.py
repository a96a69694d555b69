"""Vectors of towers: expected values from the formulas of Radford et al. 2021 (figure 3) and Zhai et al. 2023."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from core_model.config import ModelConfig, VectorSpec
from core_model.nn.transformer import Transformer
from core_model.nn.vectors import AttentionPool, TowerVector
from tests.core_model.attention_cases import fill
from tests.core_model.checkpoint.configs import WIDTH, compared_towers

END = 3


def test_similarity_is_the_scaled_cosine_of_both_vectors_plus_the_bias():
    model: Any = Transformer(compared_towers())
    text_BE, vision_BE = torch.tensor([[3.0, 0, 0, 0, 4]]), torch.tensor([[1.0, 0, 0, 0, 0]])
    with torch.no_grad():
        model.vectors.scale.fill_(math.log(10))
        model.vectors.bias.fill_(-2)
        got = model.similarity({"text": text_BE, "vision": vision_BE})
    assert got.shape == (1, 1)
    assert got.item() == pytest.approx(10 * 3 / 5 - 2, abs=1e-5)


def test_there_is_no_similarity_of_one_vector_alone_or_of_vectors_that_are_not_compared():
    config = compared_towers()
    assert config.vectors is not None
    apart = replace(config, vectors=replace(config.vectors, compared=False, bias=False))
    both = {name: torch.ones(1, 5) for name in ("text", "vision")}
    assert Transformer(config).similarity({"vision": both["vision"]}) is None
    assert Transformer(apart).similarity(both) is None


@pytest.mark.parametrize(
    ("end_token", "ids", "position"),
    [
        pytest.param(END, [5, 1, END, 4, END], 2, id="the first end token"),
        pytest.param(None, [5, 1, 9, 4, 9], 2, id="the first of the highest id"),
    ],
)
def test_a_text_is_read_at_its_end_token(end_token: int | None, ids: list[int], position: int):
    vector = TowerVector("text", VectorSpec(pooling="end", end_token=end_token), WIDTH)
    x_BNC = torch.randn(1, 5, WIDTH, generator=torch.Generator().manual_seed(0))
    assert torch.equal(vector(x_BNC, torch.tensor([ids])), x_BNC[:, position])


@pytest.mark.parametrize("given", [torch.tensor([[5, 1, 4]]), torch.zeros(1, 3, WIDTH)], ids=["ids", "vectors"])
def test_a_text_without_an_end_token_has_no_vector(given: torch.Tensor):
    vector = TowerVector("text", VectorSpec(pooling="end", end_token=END), WIDTH)
    assert vector(torch.ones(1, 3, WIDTH), given) is None


@pytest.mark.parametrize(("pooling", "position"), [("first", 0), ("last", -1)])
def test_other_vectors_are_read_at_one_end_normed_and_mapped(pooling: Any, position: int):
    given = compared_towers().vectors
    assert given is not None and given.vision is not None
    vector: Any = TowerVector("vision", replace(given.vision, pooling=pooling, attention=None), WIDTH)
    fill(vector, 1)
    x_BNC = torch.randn(2, 4, WIDTH, generator=torch.Generator().manual_seed(0))
    normed_BC = functional.layer_norm(x_BNC[:, position], (WIDTH,), vector.norm.weight, vector.norm.bias)
    want = functional.linear(normed_BC, vector.projection.weight, vector.projection.bias)
    torch.testing.assert_close(vector(x_BNC, x_BNC), want)


def test_attention_pools_by_one_learned_query_and_a_feed_forward_beside_it():
    """torch.nn.MultiheadAttention with the same weights, then y + feed_forward(norm(y))."""
    given = compared_towers().vectors
    assert given is not None and given.vision is not None and given.vision.attention is not None
    pool: Any = AttentionPool(given.vision.attention, WIDTH)
    fill(pool, 1)
    reference = nn.MultiheadAttention(WIDTH, 2, batch_first=True)
    maps = [pool.attention.query, pool.attention.key, pool.attention.value]
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([one.weight for one in maps]))
        reference.in_proj_bias.copy_(torch.cat([one.bias for one in maps]))
        reference.out_proj.load_state_dict(pool.attention.output.state_dict())
        x_BNC = torch.randn(2, 7, WIDTH, generator=torch.Generator().manual_seed(0))
        y_B1C, _ = reference(pool.probe.expand(2, 1, -1), x_BNC, x_BNC)
        normed_B1C = functional.layer_norm(y_B1C, (WIDTH,), pool.norm.weight, pool.norm.bias)
        hidden_B1F = functional.relu(pool.feed_forward.input(normed_B1C))
        want = (y_B1C + pool.feed_forward.output(hidden_B1F))[:, 0]
        torch.testing.assert_close(pool(x_BNC, site="vision.pool", tap=None), want)


def test_a_model_without_vectors_has_no_similarity():
    config = compared_towers()
    assert Transformer(ModelConfig(text=config.text)).similarity({}) is None
