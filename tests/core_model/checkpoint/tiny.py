"""A tiny GPT-2 written by hand: config.json and tensors as plain numpy, to be broken in every way."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from core_model.checkpoint import open_checkpoint
from core_model.errors import CoreError

D_MODEL, N_LAYERS, VOCAB, LENGTH = 8, 2, 11, 7

CONFIG: dict[str, Any] = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": VOCAB,
    "n_positions": LENGTH,
    "n_embd": D_MODEL,
    "n_layer": N_LAYERS,
    "n_head": 2,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True,
}


def tensors() -> dict[str, np.ndarray]:
    """Every tensor of the model, seeded."""
    shapes = {"wte.weight": (VOCAB, D_MODEL), "wpe.weight": (LENGTH, D_MODEL), "ln_f.weight": (D_MODEL,)}
    shapes["ln_f.bias"] = (D_MODEL,)
    for i in range(N_LAYERS):
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{i}.{norm}.weight": (D_MODEL,), f"h.{i}.{norm}.bias": (D_MODEL,)}
        for name, n_out, n_in in (
            ("attn.c_attn", 3 * D_MODEL, D_MODEL),
            ("attn.c_proj", D_MODEL, D_MODEL),
            ("mlp.c_fc", 4 * D_MODEL, D_MODEL),
            ("mlp.c_proj", D_MODEL, 4 * D_MODEL),
        ):
            shapes |= {f"h.{i}.{name}.weight": (n_in, n_out), f"h.{i}.{name}.bias": (n_out,)}
    rng = np.random.default_rng(0)
    return {f"transformer.{name}": rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def write(
    folder: Path, config: Mapping[str, Any] | None = None, weights: Mapping[str, np.ndarray] | None = None
) -> Path:
    """The folder with this config and these weights; by default the good ones."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG if config is None else config))
    save_file(dict(tensors() if weights is None else weights), folder / "model.safetensors")
    return folder


def changed(**changes: object) -> dict[str, Any]:
    """The good config with changes; a value of ... removes the key."""
    return {key: value for key, value in {**CONFIG, **changes}.items() if value is not ...}


def refusal(folder: Path) -> CoreError:
    """What loading is refused with; the tensors are listed all the same."""
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.tensors
        with pytest.raises(CoreError) as caught:
            checkpoint.load_model()
        assert str(caught.value) == checkpoint.info.refusal
    return caught.value


def write_shards(folder: Path, names: tuple[str, str] | None = None) -> tuple[Path, Path]:
    """The model in two shards with an index; returns the shards."""
    write(folder)
    (folder / "model.safetensors").unlink()
    every = tensors()
    half = len(every) // 2
    files = names or ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")
    parts = dict(list(every.items())[:half]), dict(list(every.items())[half:])
    for file, part in zip(files, parts, strict=True):
        save_file(part, folder / file)
    write_index(folder, {name: file for file, part in zip(files, parts, strict=True) for name in part})
    return folder / files[0], folder / files[1]


def write_index(folder: Path, weight_map: object) -> Path:
    """An index with this weight_map."""
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": weight_map}))
    return path
