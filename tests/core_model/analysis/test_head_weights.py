"""A head's own weights, cut out of what is stored, and the circuits they make."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from core_model.analysis.head_weights import head_weights
from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.native import save_run_model
from core_model.config import AttentionSpec, ModelConfig
from core_model.errors import TraceError
from core_model.nn.attention import Attention
from core_model.nn.transformer import Stack, Transformer
from core_model.pieces import PiecewiseArray
from core_model.results import FloatArray, HeadPart
from tests.core_model.analysis.models import seeded
from tests.core_model.checkpoint.configs import WIDTH, compared_towers, layer, stack, translator

N_HEADS, N_KEY_HEADS, HEAD_SIZE = 6, 2, 5


@pytest.fixture
def model() -> Transformer:
    spec = AttentionSpec(n_heads=N_HEADS, n_key_heads=N_KEY_HEADS, head_size=HEAD_SIZE, scale=1.0)
    return seeded(ModelConfig(decoder=stack(layer(spec), layer(spec))), seed=0)


def attention_of(model: Transformer, layer: int) -> Attention:
    assert isinstance(model.decoder, Stack)
    attention = model.decoder.layer(layer).attention
    assert isinstance(attention, Attention)
    return attention


def whole(array: PiecewiseArray) -> FloatArray:
    flat = np.concatenate([values for _, values in array.pieces()])
    return flat.reshape(array.shape)


def parts(model: Transformer, layer: int, head: int) -> dict[HeadPart, FloatArray]:
    weights = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    names: tuple[HeadPart, ...] = ("query", "key", "value", "output", "qk", "ov")
    return {
        part: whole(head_weights(weights.__getitem__, model.config, "decoder.self", layer, head, part))
        for part in names
    }


@pytest.mark.parametrize("head", [0, 3, 5])
def test_the_qk_circuit_scores_a_pair_of_vectors_as_the_attention_module_does(model: Transformer, head: int):
    own = attention_of(model, 1)
    x, y = torch.randn(2, WIDTH, generator=torch.Generator().manual_seed(1)).unbind()
    query = (own.query(x) - own.query(torch.zeros(WIDTH))).view(N_HEADS, HEAD_SIZE)[head]
    keys = (own.key(y) - own.key(torch.zeros(WIDTH))).view(N_KEY_HEADS, HEAD_SIZE)
    key = keys.repeat_interleave(N_HEADS // N_KEY_HEADS, dim=0)[head]
    found = x.numpy() @ parts(model, 1, head)["qk"] @ y.numpy()
    assert found == pytest.approx((query @ key).item(), rel=1e-4)


@pytest.mark.parametrize("head", [0, 3, 5])
def test_the_ov_circuit_writes_what_the_attention_module_writes_of_this_head(model: Transformer, head: int):
    own = attention_of(model, 0)
    y = torch.randn(WIDTH, generator=torch.Generator().manual_seed(2))
    values = (own.value(y) - own.value(torch.zeros(WIDTH))).view(N_KEY_HEADS, HEAD_SIZE)
    gathered = torch.zeros(N_HEADS, HEAD_SIZE)
    gathered[head] = values.repeat_interleave(N_HEADS // N_KEY_HEADS, dim=0)[head]
    written = own.output(gathered.flatten()) - own.output(torch.zeros(N_HEADS * HEAD_SIZE))
    np.testing.assert_allclose(parts(model, 0, head)["ov"] @ y.numpy(), written.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_the_circuits_are_products_of_the_four_maps(model: Transformer):
    found = parts(model, 0, 4)
    assert [found[part].shape for part in ("query", "key", "value", "output")] == [
        (HEAD_SIZE, WIDTH),
        (HEAD_SIZE, WIDTH),
        (HEAD_SIZE, WIDTH),
        (WIDTH, HEAD_SIZE),
    ]
    np.testing.assert_allclose(found["qk"], found["query"].T @ found["key"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found["ov"], found["output"] @ found["value"], rtol=1e-5, atol=1e-5)


def test_heads_that_are_not_there_are_named(model: Transformer):
    for site, index, head in (
        ("decoder.self", 0, N_HEADS),
        ("decoder.self", 0, -1),
        ("decoder.self", 2, 0),
        ("decoder.self", -5, 0),
        ("decoder.cross", 0, 0),
    ):
        with pytest.raises(TraceError, match=f"no {site} layer {index} head {head}"):
            head_weights(lambda name: np.zeros((1, 1), np.float32), model.config, site, index, head, "query")


def test_cross_attention_has_weights_of_its_own(tmp_path: Path):
    config = translator()
    save_run_model(tmp_path, seeded(config, seed=3), None, {})
    asked: list[str] = []
    with open_checkpoint(tmp_path) as checkpoint:

        def read(name: str) -> FloatArray:
            asked.append(name)
            return checkpoint.read_weight(name)

        head_weights(read, config, "decoder.cross", 0, 0, "ov")
    assert asked == ["decoder.layers.0.cross_attention.output.weight", "decoder.layers.0.cross_attention.value.weight"]


def test_the_maps_of_what_pools_a_tower_are_its_own_not_the_first_layers():
    model = seeded(compared_towers(), seed=0)
    weights = {name: parameter.detach().numpy() for name, parameter in model.named_parameters()}
    found = whole(head_weights(weights.__getitem__, model.config, "vision.pool", 0, 1, "query"))
    np.testing.assert_array_equal(found, weights["vectors.vision.pool.attention.query.weight"][WIDTH // 2 :])
