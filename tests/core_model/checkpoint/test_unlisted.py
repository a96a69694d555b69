"""What is known by name and not read: one sentence says what it is and why; its tensors are listed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch import nn

from core_model.errors import CheckpointError
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.references import saved_state

D_MODEL, N_HEADS = 30, 5


def refusal(folder: Path) -> str:
    """Why no attention is offered."""
    error = tiny.refusal(folder)
    assert isinstance(error, CheckpointError)
    return str(error)


@pytest.mark.parametrize(
    ("model_type", "what"),
    [
        ("mamba", "is mamba, a model without attention"),
        ("rwkv", "is rwkv, a model without attention"),
        ("fnet", "is fnet, a model without attention"),
        ("swin", "is swin, a model that attends within windows of an image"),
        ("longformer", "is longformer, a model that attends to chosen positions only"),
        ("jamba", "is jamba, a hybrid"),
        ("deepseek_v3", "is deepseek_v3, a model that attends over compressed keys"),
        ("llava", "is llava, several models in one"),
    ],
)
def test_a_model_of_another_kind_is_named_with_the_reason(model_type: str, what: str, tmp_path: Path) -> None:
    told = refusal(tiny.write(tmp_path / "folder", {"model_type": model_type}))
    assert what in told and told.endswith("only its tensors are shown")


def test_of_a_type_nobody_told_us_the_type_is_named(tmp_path: Path) -> None:
    assert "the model_type 'zebra' in config.json is unknown here" in refusal(
        tiny.write(tmp_path, {"model_type": "zebra"})
    )


def test_mamba_is_known_without_a_config(tmp_path: Path) -> None:
    folder = tiny.write(tmp_path, weights={"backbone.layers.0.mixer.A_log": np.zeros((4, 2), np.float32)})
    (folder / "config.json").unlink()
    assert "a model without attention (Mamba)" in refusal(folder)


@pytest.mark.parametrize(
    ("module", "what"),
    [
        (nn.MultiheadAttention(D_MODEL, N_HEADS, add_bias_kv=True), "a learned key and value (add_bias_kv)"),
        (nn.MultiheadAttention(D_MODEL, N_HEADS, kdim=12, vdim=14), "keys and values of other widths (kdim, vdim)"),
        (nn.ModuleList(nn.MultiheadAttention(D_MODEL, N_HEADS) for _ in range(2)), "several torch.nn.Multihead"),
    ],
    ids=["learned-keys", "other-widths", "several-attentions"],
)
def test_a_module_of_torch_that_is_not_computed_is_named(module: nn.Module, what: str, tmp_path: Path) -> None:
    assert what in refusal(saved_state(module, tmp_path))


@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("model.layers.0.self_attn.q_proj.g_idx", "GPTQ"),
        ("model.layers.0.self_attn.q_proj.qweight", "GPTQ or AWQ"),
        ("model.layers.0.self_attn.q_proj.weight.absmax", "bitsandbytes"),
        ("model.layers.0.self_attn.q_proj.SCB", "bitsandbytes"),
        ("model.layers.0.self_attn.q_proj.weight_scale_inv", "fp8"),
        ("layers.0.attention.wq.qscale_weight", "fp8"),
        ("model.layers.0.self_attn.q_proj.weight_packed", "compressed-tensors"),
        ("model.layers.0.mlp.experts.gate_up_proj_blocks", "mxfp4"),
    ],
)
def test_quantised_weights_are_named_by_their_tensors_where_no_config_does(
    name: str, method: str, tmp_path: Path
) -> None:
    folder = tiny.write(tmp_path, {"model_type": "llama"}, {**tiny.tensors(), name: np.zeros(3, np.int32)})
    assert f"quantised by {method} (1 tensor such as {name})" in refusal(folder)
