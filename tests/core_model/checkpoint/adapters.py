"""LoRA adapters as the peft library saves them, and what their factors multiply to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from core_model.checkpoint import open_checkpoint
from tests.core_model.checkpoint import tiny

RANK, ALPHA = 3, 12
CONFIG: dict[str, Any] = {
    "peft_type": "LORA",
    "base_model_name_or_path": "someone/base",
    "r": RANK,
    "lora_alpha": ALPHA,
    "fan_in_fan_out": False,
}
ATTENTION = "transformer.h.1.attn.c_attn"
Tensors = dict[str, np.ndarray]


def factors(module: str, n_outputs: int, n_inputs: int, *, rank: int = RANK, seed: int = 0) -> Tensors:
    """A and B of one module, as peft names them."""
    rng = np.random.default_rng(seed)
    names = {"A": (rank, n_inputs), "B": (n_outputs, rank)}
    return {
        f"base_model.model.{module}.lora_{factor}.weight": rng.normal(size=shape).astype(np.float32)
        for factor, shape in names.items()
    }


def product(tensors: Tensors, module: str) -> np.ndarray:
    """B A of one module."""
    a, b = (tensors[f"base_model.model.{module}.lora_{factor}.weight"] for factor in "AB")
    return b @ a


def adapter(folder: Path, tensors: Tensors, **config: Any) -> Path:
    """The folder of an adapter."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({**CONFIG, **config}))
    save_file(tensors, folder / "adapter_model.safetensors")
    return folder


def gpt2_adapter(folder: Path, **config: Any) -> tuple[Path, Tensors]:
    """An adapter of the tiny GPT-2's fused attention, whose weight is stored [inputs, outputs]."""
    tensors = factors(ATTENTION, 3 * tiny.D_MODEL, tiny.D_MODEL)
    return adapter(folder, tensors, fan_in_fan_out=True, **config), tensors


def refusal(folder: Path, base: Path | None = None) -> str:
    """Why the adapter cannot be merged; its own tensors can be looked at all the same."""
    with open_checkpoint(folder, assume={"base": base} if base else None) as checkpoint:
        assert any("lora" in name for name in checkpoint.tensors)
        assert checkpoint.info.needs == ("base",)
        return checkpoint.info.refusal or ""
