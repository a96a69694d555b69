"""What loading costs: one copy of the model in memory, and none of the imports that are not needed for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.bench.files import ten_gigabytes

LOAD = """
import sys
import torch
from core_model.checkpoint import open_checkpoint
from core_model.nn.transformer import Transformer

def resident(key):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

with open_checkpoint(sys.argv[1]) as checkpoint:
    before = resident("VmRSS")
    open("/proc/self/clear_refs", "w").write("5")
    model = checkpoint.load_model()
print(resident("VmHWM") - before, sum(parameter.nbytes for parameter in model.parameters()))
assert "sympy" not in sys.modules
"""


LIST = """
import sys
from core_model.checkpoint import open_checkpoint

with open_checkpoint(sys.argv[1]) as checkpoint:
    print(len(checkpoint.tensors), sum(tensor.n_bytes for tensor in checkpoint.tensors.values()))
with open("/proc/self/status") as lines:
    print(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")))
"""


def a_larger_gpt2(folder: Path, dtype: str) -> None:
    """Some 30 million weights, most of them in matrices that are stored transposed."""
    width, n_layers, vocab, length = 512, 9, 3000, 64
    config = {"model_type": "gpt2", "n_head": 8, "n_layer": n_layers, "n_embd": width}
    (folder / "config.json").write_text(json.dumps(config))
    weights = {
        "wte.weight": (vocab, width),
        "wpe.weight": (length, width),
        "ln_f.weight": (width,),
        "ln_f.bias": (width,),
    }
    for i in range(n_layers):
        for name, n_in, n_out in (
            ("attn.c_attn", 1, 3),
            ("attn.c_proj", 1, 1),
            ("mlp.c_fc", 1, 4),
            ("mlp.c_proj", 4, 1),
        ):
            weights |= {f"h.{i}.{name}.weight": (n_in * width, n_out * width), f"h.{i}.{name}.bias": (n_out * width,)}
        weights |= {f"h.{i}.{norm}.{kind}": (width,) for norm in ("ln_1", "ln_2") for kind in ("weight", "bias")}
    save_file({name: np.ones(shape, dtype) for name, shape in weights.items()}, folder / "model.safetensors")


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="only Linux tells the peak of a process, for good"
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_loading_needs_a_tenth_more_memory_than_the_model(dtype: str, tmp_path: Path) -> None:
    a_larger_gpt2(tmp_path, dtype)
    done = subprocess.run([sys.executable, "-c", LOAD, tmp_path], capture_output=True, text=True, check=True)
    peak, size = map(int, done.stdout.split())
    assert size > 100_000_000
    assert peak < 1.1 * size + 8_000_000, "8 MB: the libraries' own, whatever the size of the model"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process, for good")
def test_a_checkpoint_of_10_gb_is_listed_within_150_mb(tmp_path: Path) -> None:
    """The files are sparse. How long it takes, `python -m tests.bench files` tells."""
    folder = ten_gigabytes(tmp_path / "model")
    done = subprocess.run([sys.executable, "-c", LIST, folder], capture_output=True, text=True, check=True)
    n_tensors, n_bytes, peak = map(int, done.stdout.split())
    assert n_tensors == 3 + 25 * 9 and n_bytes > 10e9
    assert peak < 150e6
