"""DoRA adapters over their bases, held against the formula of the paper computed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from core_model.checkpoint import open_checkpoint
from core_model.trace import Inputs, run_trace
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.adapters import (
    ALPHA,
    ATTENTION,
    RANK,
    Tensors,
    adapter,
    factors,
    gpt2_adapter,
    product,
    refusal,
)
from tests.core_model.checkpoint.references import IDS, logits_of, reference, saved, seeded


def dora(weight: np.ndarray, change: np.ndarray, length: np.ndarray) -> np.ndarray:
    """Liu et al. 2024, eq. 5, for [outputs, inputs]: the rows of W + s B A, as long as learned."""
    merged = weight.astype(np.float64) + change
    return length[:, None] * merged / np.linalg.norm(merged, axis=1, keepdims=True)


def lengths(module: str, n_outputs: int, *, spelling: str = "lora_magnitude_vector") -> Tensors:
    """DoRA's lengths of the weights of each output."""
    values = np.random.default_rng(5).uniform(0.5, 2, n_outputs).astype(np.float32)
    return {f"base_model.model.{module}.{spelling}": values}


@pytest.mark.parametrize("spelling", ["lora_magnitude_vector", "lora_magnitude_vector.default.weight"])
@pytest.mark.parametrize("by_root", [False, True])
def test_dora_makes_the_weights_of_each_output_as_long_as_learned(by_root: bool, spelling: str, tmp_path: Path) -> None:
    """Of a weight stored [inputs, outputs]: its columns."""
    base = tiny.write(tmp_path / "base")
    _, tensors = gpt2_adapter(tmp_path / "first")
    learned = lengths(ATTENTION, 3 * tiny.D_MODEL, spelling=spelling)
    config = {"use_dora": True, "fan_in_fan_out": True, "use_rslora": by_root}
    folder = adapter(tmp_path / "adapter", {**tensors, **learned}, **config)
    scale = ALPHA / (RANK**0.5 if by_root else RANK)
    (length,) = learned.values()
    want = dora(tiny.tensors()[f"{ATTENTION}.weight"].T, scale * product(tensors, ATTENTION), length).T
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        name = f"{ATTENTION}.weight"
        np.testing.assert_allclose(checkpoint.read_tensor(name), want, atol=1e-5)
        np.testing.assert_allclose(checkpoint._store.read(name, 5, 60), want.ravel()[5:60], atol=1e-5)
        exact = np.concatenate([values for _, values in checkpoint.tensor(name).pieces()])
        np.testing.assert_allclose(exact, want.ravel(), atol=1e-5)
        assert checkpoint.info.facts[0].value == "adapter: DoRA, merged into 1 weight"


def test_the_library_agrees_on_dora_in_a_linear_map_and_in_the_embedding(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"hidden_size": 48, "intermediate_size": 40, "num_hidden_layers": 2, "vocab_size": 90}
    model = seeded(LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=6, num_key_value_heads=2)))
    base = saved(model, tmp_path / "base")
    linear, table = "model.layers.1.self_attn.k_proj", "model.embed_tokens"
    rng = np.random.default_rng(3)
    pair = {"lora_embedding_A": (RANK, 90), "lora_embedding_B": (48, RANK)}
    embedding = {
        f"base_model.model.{table}.{name}": 0.1 * rng.normal(size=shape).astype(np.float32)
        for name, shape in pair.items()
    }
    tensors = {**factors(linear, 16, 48), **lengths(linear, 16), **embedding, **lengths(table, 48)}
    a, b = embedding.values()
    with torch.no_grad():
        for module, change in ((linear, product(tensors, linear)), (table, b @ a)):
            weight = model.get_parameter(f"{module}.weight")
            old = weight.numpy() if module == linear else weight.numpy().T
            new = dora(old, ALPHA / RANK * change, lengths(module, len(old)).popitem()[1])
            weight.copy_(torch.from_numpy(new if module == linear else new.T))
    want = logits_of(reference(model))
    folder = adapter(tmp_path / "adapter", tensors, use_dora=True)
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        trace = run_trace(checkpoint.load_model(), Inputs(ids=IDS))
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, want, atol=2e-3, rtol=1e-4)


def test_an_output_without_weights_has_no_direction_to_be_made_longer(tmp_path: Path) -> None:
    weights = tiny.tensors()
    weights[f"{ATTENTION}.weight"][:, 4] = 0
    base = tiny.write(tmp_path / "base", weights=weights)
    _, tensors = gpt2_adapter(tmp_path / "first")
    tensors[f"base_model.model.{ATTENTION}.lora_B.weight"][4] = 0
    tensors |= lengths(ATTENTION, 3 * tiny.D_MODEL)
    folder = adapter(tmp_path / "adapter", tensors, use_dora=True, fan_in_fan_out=True)
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        assert not checkpoint.read_tensor(f"{ATTENTION}.weight")[:, 4].any()


@pytest.mark.parametrize(("n_lengths", "told"), [(0, "holds no lora_magnitude_vector of"), (23, "has [23] for the")])
def test_lengths_that_are_missing_or_too_few_are_named(n_lengths: int, told: str, tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    _, tensors = gpt2_adapter(tmp_path / "first")
    learned = lengths(ATTENTION, n_lengths) if n_lengths else {}
    folder = adapter(tmp_path / "adapter", {**tensors, **learned}, use_dora=True, fan_in_fan_out=True)
    assert told in refusal(folder, base)


def test_a_magnitude_of_dora_without_its_key_is_named(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    _, tensors = gpt2_adapter(tmp_path / "first")
    tensors[f"base_model.model.{ATTENTION}.lora_magnitude_vector"] = np.ones(24, np.float32)
    assert "lora_magnitude_vector" in refusal(adapter(tmp_path / "adapter", tensors), base)
