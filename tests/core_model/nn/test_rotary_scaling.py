"""Every way of stretching rotary frequencies against the functions transformers computes them with."""

import math

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from core_model.config import RotaryPositions, RotaryScaling
from core_model.nn.positions import rotary_frequencies

HEAD_SIZE = 16
ORIGINAL = 64


def theirs(parameters: dict[str, object], length: int, max_length: int = ORIGINAL) -> tuple[torch.Tensor, float]:
    """Frequencies and attention factor by transformers, of a model with heads of HEAD_SIZE."""
    config = LlamaConfig(
        hidden_size=2 * HEAD_SIZE,
        num_attention_heads=2,
        max_position_embeddings=max_length,
        rope_parameters=parameters,
    )
    return ROPE_INIT_FUNCTIONS[str(parameters["rope_type"])](config, "cpu", seq_len=length)


def assert_agree(
    scaling: RotaryScaling, parameters: dict[str, object], length: int, max_length: int = ORIGINAL
) -> None:
    base = parameters["rope_theta"]
    assert isinstance(base, float)
    frequency_P, factor = rotary_frequencies(RotaryPositions(n_rotated=HEAD_SIZE, base=base, scaling=scaling), length)
    expected_P, expected_factor = theirs(parameters, length, max_length)
    torch.testing.assert_close(frequency_P.float(), expected_P, rtol=2e-6, atol=0)
    assert factor == pytest.approx(expected_factor)


@pytest.mark.parametrize("base", [10000.0, 500000.0])
@pytest.mark.parametrize("factor", [2.0, 8.0])
def test_linear(base, factor):
    parameters: dict[str, object] = {"rope_type": "linear", "rope_theta": base, "factor": factor}
    assert_agree(RotaryScaling(kind="linear", factor=factor), parameters, 10)


@pytest.mark.parametrize("length", [1, ORIGINAL, ORIGINAL + 1, 1000])
@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_dynamic_stretches_beyond_the_trained_length_only(length, factor):
    parameters: dict[str, object] = {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": factor}
    assert_agree(RotaryScaling(kind="dynamic", factor=factor, original_length=ORIGINAL), parameters, length)


@pytest.mark.parametrize(("beta_fast", "beta_slow"), [(32.0, 1.0), (16.0, 2.0)])
@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize("original", [64, 4096])
def test_yarn(beta_fast, beta_slow, truncate, original):
    factor = 4.0
    parameters: dict[str, object] = {
        "rope_type": "yarn",
        "rope_theta": 10000.0,
        "factor": factor,
        "original_max_position_embeddings": original,
        "beta_fast": beta_fast,
        "beta_slow": beta_slow,
        "truncate": truncate,
    }
    scaling = RotaryScaling(
        kind="yarn",
        factor=factor,
        original_length=original,
        beta_fast=beta_fast,
        beta_slow=beta_slow,
        truncate=truncate,
        attention_factor=0.1 * math.log(factor) + 1,  # Peng et al. 2023, eq. 22
    )
    assert_agree(scaling, parameters, 100, max_length=4 * original)


@pytest.mark.parametrize(("low", "high"), [(1.0, 4.0), (2.0, 8.0)])
@pytest.mark.parametrize("original", [64, 8192])
def test_llama3(low, high, original):
    parameters: dict[str, object] = {
        "rope_type": "llama3",
        "rope_theta": 500000.0,
        "factor": 8.0,
        "original_max_position_embeddings": original,
        "low_freq_factor": low,
        "high_freq_factor": high,
    }
    scaling = RotaryScaling(
        kind="llama3", factor=8.0, original_length=original, low_frequency_factor=low, high_frequency_factor=high
    )
    assert_agree(scaling, parameters, 100, max_length=8 * original)


@pytest.mark.parametrize("length", [1, ORIGINAL, ORIGINAL + 1, 4 * ORIGINAL])
def test_longrope_has_one_set_of_factors_within_the_trained_length_and_one_beyond(length):
    short = [1.0 + 0.05 * pair for pair in range(HEAD_SIZE // 2)]
    long = [1.5 + 0.4 * pair for pair in range(HEAD_SIZE // 2)]
    parameters: dict[str, object] = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "factor": 4.0,
        "original_max_position_embeddings": ORIGINAL,
        "short_factor": short,
        "long_factor": long,
    }
    scaling = RotaryScaling(
        kind="longrope",
        factor=4.0,
        original_length=ORIGINAL,
        short_factors=tuple(short),
        long_factors=tuple(long),
        attention_factor=math.sqrt(1 + math.log(4) / math.log(ORIGINAL)),  # Ding et al. 2024, section 4
    )
    assert_agree(scaling, parameters, length, max_length=4 * ORIGINAL)
