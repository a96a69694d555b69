"""What opening and loading cost: seconds against the libraries people would use instead, and memory against the sizes.

The large checkpoint is made of sparse files, which take no room on disk. Each measurement is a process of its own, so
that its memory is its own.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.bench.measure import Line

_N_ROUNDS = 5
_N_SHARDS = 5

_TOLD = """
import sys, time
began = time.perf_counter()
{work}
took = time.perf_counter() - began
with open("/proc/self/status") as lines:
    peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
print(took, peak, found)
"""
_LIST = """
from core_model.checkpoint import open_checkpoint
began = time.perf_counter()
with open_checkpoint(sys.argv[1]) as checkpoint:
    found = len(checkpoint.tensors)
"""
_LIST_BY_LIBRARY = """
from pathlib import Path
from safetensors import safe_open
began = time.perf_counter()
found = 0
for path in Path(sys.argv[1]).glob("*.safetensors"):
    with safe_open(path, "numpy") as file:
        found += sum(1 for name in file.keys() if file.get_slice(name).get_shape())
"""
_READ_ONE = """
from core_model.analysis.tensor_statistics import tensor_statistics
from core_model.checkpoint import open_checkpoint
began = time.perf_counter()
with open_checkpoint(sys.argv[1]) as checkpoint:
    name = max(checkpoint.tensors, key=lambda name: checkpoint.tensors[name].n_bytes)
    found = tensor_statistics(checkpoint.tensor(name)).n_elements
"""
_LOAD = """
import torch
from core_model.checkpoint import open_checkpoint
import core_model.checkpoint.loading
with open_checkpoint(sys.argv[1]) as checkpoint:
    with open("/proc/self/status") as lines:
        before = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
    began = time.perf_counter()
    model = checkpoint.load_model()
found = before
"""
_LOAD_BY_LIBRARY = """
from pathlib import Path
from safetensors.torch import load_file
began = time.perf_counter()
state = {}
for path in Path(sys.argv[1]).glob("*.safetensors"):
    state |= {name: tensor.float() for name, tensor in load_file(path).items()}
found = sum(tensor.nbytes for tensor in state.values())
"""


def lines() -> Iterator[Line]:
    """Listing and looking into a large checkpoint; loading a smaller one."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _listing(ten_gigabytes(Path(folder, "large")))
        yield from _loading(_llama(Path(folder, "small"), 8, 1024, 2816, 32000, 2))


def ten_gigabytes(folder: Path) -> Path:
    """A checkpoint of 10.6 GB, that takes no room on disk."""
    return _llama(folder, 25, 4096, 11008, 32000, _N_SHARDS)


def _llama(folder: Path, n_layers: int, width: int, hidden: int, vocab: int, n_shards: int) -> Path:
    """A sharded checkpoint of 16-bit zeros, with an index, that takes no room on disk."""
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (vocab, width),
        "lm_head.weight": (vocab, width),
    }
    shapes["model.norm.weight"] = (width,)
    for i in range(n_layers):
        layer = f"model.layers.{i}"
        shapes |= {f"{layer}.self_attn.{name}_proj.weight": (width, width) for name in "qkvo"}
        shapes |= {f"{layer}.mlp.{name}_proj.weight": (hidden, width) for name in ("gate", "up")}
        shapes[f"{layer}.mlp.down_proj.weight"] = (width, hidden)
        shapes |= {f"{layer}.{name}_layernorm.weight": (width,) for name in ("input", "post_attention")}
    folder.mkdir()
    names, weight_map = list(shapes), {}
    for number in range(n_shards):
        file = f"model-{number + 1:05}-of-{n_shards:05}.safetensors"
        part = {name: shapes[name] for name in names[number::n_shards]}
        _sparse(folder / file, part)
        weight_map |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    config = {"model_type": "llama", "num_attention_heads": width // 128, "num_hidden_layers": n_layers}
    sizes = {"hidden_size": width, "intermediate_size": hidden, "vocab_size": vocab, "tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(config | sizes))
    return folder


def _sparse(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """A file of tensors of zeros, of which only the header is written."""
    header, position = {}, 0
    for name, shape in shapes.items():
        end = position + 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [position, end]}
        position = end
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + position)


def _listing(folder: Path) -> Iterator[Line]:
    n_bytes = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    ours = [_measured(_LIST, folder) for _ in range(_N_ROUNDS)]
    theirs = [_measured(_LIST_BY_LIBRARY, folder) for _ in range(_N_ROUNDS)]
    seconds, peak, found = statistics.median(row[0] for row in ours), max(row[1] for row in ours), ours[0][2]
    yield Line(
        work=f"list {n_bytes / 1e9:.1f} GB in {_N_SHARDS} shards, {found} tensors: {seconds:.2f} s",
        reference=f"safetensors.safe_open {statistics.median(row[0] for row in theirs):.2f} s",
        found=f"{seconds:.2f} s",
        must_be="<= 1 s",
    )
    bare = max(row[1] for row in theirs)
    yield Line(
        work="the whole process meanwhile",
        reference=f"safetensors.safe_open {bare / 1e6:.0f} MB",
        found=f"{peak / 1e6:.0f} MB",
        must_be="<= 150 MB",
    )
    took, peak_reading, n_elements = _measured(_READ_ONE, folder)
    yield Line(
        work=f"all numbers of its largest tensor, {2 * int(n_elements) / 1e6:.0f} MB: {took:.2f} s",
        reference="listing alone",
        found=f"{(peak_reading - peak) / 1e6:+.0f} MB",
        must_be="in pieces",
    )


def _loading(folder: Path) -> Iterator[Line]:
    ours = [_measured(_LOAD, folder) for _ in range(_N_ROUNDS)]
    theirs = [_measured(_LOAD_BY_LIBRARY, folder) for _ in range(_N_ROUNDS)]
    ratio = statistics.median(mine[0] / other[0] for mine, other in zip(ours, theirs, strict=True))
    size = float(theirs[0][2])
    peaks = [(peak - int(before)) / size for _, peak, before in ours]
    yield Line(
        work=f"load {size / 1e6:.0f} MB, stored as bfloat16, as float32: {statistics.median(r[0] for r in ours):.2f} s",
        reference="safetensors.torch.load_file, float()",
        found=f"{ratio:.2f}x its time",
        must_be="",
    )
    yield Line(work="its peak of memory", reference="the model's size", found=f"{max(peaks):.2f}x", must_be="<= 1.1x")


def _measured(work: str, folder: Path) -> tuple[float, int, str]:
    """Seconds, peak of memory in bytes, and what was found, of a process of its own."""
    program = _TOLD.format(work=work)
    done = subprocess.run([sys.executable, "-c", program, str(folder)], check=True, capture_output=True, text=True)
    seconds, peak, found = done.stdout.strip().split(maxsplit=2)
    return float(seconds), int(peak), found
