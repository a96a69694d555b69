"""What is said of a checkpoint's values: NaN, Inf, zeros, and weights nobody trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from core_model.cancel import CancelToken
from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.health import Examination
from core_model.errors import Cancelled
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.references import saved, seeded

Weights = dict[str, np.ndarray]
SIZES: dict[str, Any] = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 96,
    "vocab_size": 90,
}


def warnings_of(folder: Path) -> str:
    with open_checkpoint(folder) as checkpoint:
        return " / ".join(checkpoint.check_health().warnings)


def broken(folder: Path, name: str, change: Callable[[np.ndarray], None]) -> Path:
    """The tiny model with one tensor changed."""
    weights = tiny.tensors()
    change(weights[f"transformer.{name}"])
    return tiny.write(folder, weights=weights)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "NaN"), (np.inf, "Inf"), (-np.inf, "Inf")])
def test_a_number_that_is_none_is_told_with_its_tensor(value: float, word: str, tmp_path: Path) -> None:
    def spoil(weight: np.ndarray) -> None:
        weight[1, 2] = value

    told = warnings_of(broken(tmp_path, "h.1.mlp.c_fc.weight", spoil))
    assert word in told and "1 tensor with" in told and "h.1.mlp.c_fc.weight" in told


def test_rows_of_zeros_are_counted_and_named(tmp_path: Path) -> None:
    def spoil(weight: np.ndarray) -> None:
        weight[[2, 5]] = 0

    told = warnings_of(broken(tmp_path, "h.0.attn.c_proj.weight", spoil))
    assert "2 rows of nothing but zeros" in told and "h.0.attn.c_proj.weight (2 of 8)" in told


def test_a_matrix_of_zeros_is_told_and_zeros_in_a_bias_are_not(tmp_path: Path) -> None:
    assert "1 matrix with nothing but zeros: transformer.h.0.mlp.c_fc.weight" in warnings_of(
        broken(tmp_path / "matrix", "h.0.mlp.c_fc.weight", lambda weight: weight.fill(0))
    )
    assert "zeros" not in warnings_of(broken(tmp_path / "bias", "h.0.mlp.c_fc.bias", lambda bias: bias.fill(0)))


def test_a_row_of_zeros_in_a_table_is_its_padding(tmp_path: Path) -> None:
    def pad(table: np.ndarray) -> None:
        table[0] = 0

    assert "zeros" not in warnings_of(broken(tmp_path / "padded", "wte.weight", pad))
    assert "nothing but zeros" in warnings_of(broken(tmp_path / "empty", "wte.weight", lambda table: table.fill(0)))


@pytest.mark.parametrize(
    ("make", "norm_scales"),
    [
        (lambda: GPT2LMHeadModel(GPT2Config(n_layer=3, n_embd=48, n_head=3, vocab_size=90)), 7),
        (lambda: LlamaForCausalLM(LlamaConfig(**SIZES)), 7),
        (lambda: BertModel(BertConfig(**SIZES)), 7),
    ],
    ids=["gpt2", "llama", "bert"],
)
def test_a_model_as_its_library_initialises_it_looks_untrained(
    make: Callable[[], GPT2LMHeadModel], norm_scales: int, tmp_path: Path
) -> None:
    told = warnings_of(saved(make(), tmp_path))
    assert "looks untrained" in told and f"{norm_scales} norm scales exactly 1" in told


@pytest.mark.parametrize("trained", ["transformer.h.1.ln_1.weight", "transformer.h.0.attn.c_attn.bias"])
def test_one_value_that_training_moved_is_enough_to_look_trained(trained: str, tmp_path: Path) -> None:
    import torch

    model = GPT2LMHeadModel(GPT2Config(n_layer=3, n_embd=48, n_head=3, vocab_size=90))
    with torch.no_grad():
        model.get_parameter(trained)[5] += 0.001
    assert "untrained" not in warnings_of(saved(model, tmp_path))


def test_matrices_of_one_role_with_different_spreads_look_trained(tmp_path: Path) -> None:
    import torch

    model = LlamaForCausalLM(LlamaConfig(**SIZES))  # as with norms folded into the matrices after training
    with torch.no_grad():
        model.get_parameter("model.layers.1.mlp.up_proj.weight").mul_(1.2)
    assert "untrained" not in warnings_of(saved(model, tmp_path))


def test_a_model_with_all_weights_moved_has_nothing_to_tell(tmp_path: Path) -> None:
    model = seeded(GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=48, n_head=3, vocab_size=90)))
    with open_checkpoint(saved(model, tmp_path)) as checkpoint:
        before = checkpoint.info.warnings
        assert checkpoint.check_health().warnings == before


def test_loading_tells_the_same_as_the_check(tmp_path: Path) -> None:
    folder = broken(tmp_path, "h.1.mlp.c_fc.weight", lambda weight: weight.fill(np.nan))
    with open_checkpoint(folder) as checkpoint:
        checkpoint.load_model()
        loaded = checkpoint.info.warnings
    assert loaded[-1] in warnings_of(folder) and "NaN" in loaded[-1]


def test_checking_stops_when_asked(tmp_path: Path) -> None:
    cancel = CancelToken()
    cancel.cancel()
    with open_checkpoint(tiny.write(tmp_path)) as checkpoint, pytest.raises(Cancelled):
        checkpoint.check_health(cancel=cancel)


@pytest.mark.parametrize("step", [1, 3, 7, 20])
def test_pieces_that_cut_rows_give_what_the_whole_gives(step: int) -> None:
    """Rows of 5, two of them zeros; mean and deviation by numpy."""
    values = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    values[[0, 2]] = 0
    examination = Examination("w", values.shape)
    for begin in range(0, values.size, step):
        part = slice(begin, min(begin + step, values.size))
        examination.add(part, values.ravel()[part])
    result = examination.result
    assert result.n_zero_rows == 2
    assert result.mean == pytest.approx(values.mean(dtype=np.float64))
    assert result.deviation == pytest.approx(values.std(dtype=np.float64))
