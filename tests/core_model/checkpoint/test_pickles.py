"""Pickles: never run, never read here; their weights come out the same, and what is more than weights is refused."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from core_model.cancel import CancelToken
from core_model.checkpoint import open_checkpoint, pickle_child
from core_model.checkpoint.pickles import convert_pickle, is_pickle
from core_model.errors import Cancelled, CheckpointError, PickleError
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.adapters import gpt2_adapter


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(self.target),))


def state() -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(tensor) for name, tensor in tiny.tensors().items()}


def saved(path: Path, content: object, *, zipped: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path


def assert_same_weights(folder: Path) -> None:
    found = load_file(folder / "model.safetensors")
    assert found.keys() == tiny.tensors().keys()
    for name, tensor in tiny.tensors().items():
        np.testing.assert_array_equal(found[name], tensor)


@pytest.mark.parametrize("zipped", [True, False])
def test_weights_come_out_as_they_are_with_all_that_says_how_to_use_them(zipped: bool, tmp_path: Path) -> None:
    source = saved(tmp_path / "in" / "pytorch_model.bin", state(), zipped=zipped)
    (source.parent / "config.json").write_text(json.dumps(tiny.CONFIG))
    beside = ("vocab.json", "preprocessor_config.json")
    for name in beside:
        (source.parent / name).write_text("{}")
    torch.save({"lr": 1}, source.parent / "training_args.bin")
    convert_pickle(source.parent, tmp_path / "out")
    assert_same_weights(tmp_path / "out")
    assert all((tmp_path / "out" / name).is_file() for name in beside)
    with open_checkpoint(tmp_path / "out") as checkpoint:
        assert checkpoint.info.refusal is None


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("wrapped", [False, True])
def test_code_in_a_pickle_does_not_run_and_is_named(zipped: bool, wrapped: bool, tmp_path: Path) -> None:
    target = tmp_path / "touched"
    trap = {**state(), "trap": Trap(target)} if wrapped else Trap(target)
    source = saved(tmp_path / "evil.bin", trap, zipped=zipped)
    with pytest.raises(CheckpointError, match=r"evil\.bin asks to run posix\.mkdir, .* do not trust it"):
        convert_pickle(source, tmp_path / "out")
    assert not target.exists() and not (tmp_path / "out").exists()
    torch.load(source, weights_only=False)
    assert target.exists(), "the trap works"


@pytest.mark.parametrize("zipped", [True, False])
def test_opening_a_pickle_does_not_run_it_either(zipped: bool, tmp_path: Path) -> None:
    source = saved(tmp_path / "pytorch_model.bin", Trap(tmp_path / "touched"), zipped=zipped)
    for path in (source, tmp_path):
        with pytest.raises(PickleError, match=r"pickles can run code .* convert it"):
            open_checkpoint(path)
        assert is_pickle(path)
    disguised = tmp_path / "other" / "model.safetensors"
    disguised.parent.mkdir()
    source.rename(disguised)
    with pytest.raises(PickleError):
        open_checkpoint(disguised)
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize("key", ["state_dict", "model", "model_state_dict"])
def test_weights_inside_what_a_training_script_saved_are_found(key: str, tmp_path: Path) -> None:
    source = saved(tmp_path / "run.pt", {key: state(), "epoch": 3, "args": {"lr": 0.1}, "losses": [1.0]})
    convert_pickle(source, tmp_path / "out")
    assert_same_weights(tmp_path / "out")


def test_tied_and_transposed_tensors_are_written_in_full(tmp_path: Path) -> None:
    table = torch.arange(6.0).reshape(2, 3)
    source = saved(tmp_path / "a.pt", {"table": table, "head": table, "turned": table.T})
    convert_pickle(source, tmp_path / "out")
    found = load_file(tmp_path / "out" / "model.safetensors")
    np.testing.assert_array_equal(found["head"], table.numpy())
    np.testing.assert_array_equal(found["turned"], table.numpy().T)


def test_shards_stay_shards_with_an_index(tmp_path: Path) -> None:
    every = list(state().items())
    for number, part in enumerate((every[:5], every[5:]), start=1):
        saved(tmp_path / "in" / f"pytorch_model-0000{number}-of-00002.bin", dict(part))
    (tmp_path / "in" / "config.json").write_text(json.dumps(tiny.CONFIG))
    convert_pickle(tmp_path / "in", tmp_path / "out")
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"].values()) == {f"model-0000{n}-of-00002.safetensors" for n in (1, 2)}
    with open_checkpoint(tmp_path / "out") as checkpoint:
        assert checkpoint.info.refusal is None and checkpoint.tensors.keys() == tiny.tensors().keys()


def test_a_pickle_that_asks_for_endless_memory_is_stopped(tmp_path: Path) -> None:
    """A tensor of 2^40 numbers over a storage that says it has them."""
    source = saved(tmp_path / "big.pt", {"w": torch.zeros(1).expand(1 << 40)})
    with pytest.raises(CheckpointError, match=r"big\.pt asks for more memory than weights of its size need"):
        convert_pickle(source, tmp_path / "out")


def test_a_pickle_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    source = saved(tmp_path / "slow.pt", state())
    with pytest.raises(CheckpointError, match=r"slow\.pt was not read within 0 s"):
        convert_pickle(source, tmp_path / "out", seconds=0)
    assert list(tmp_path.iterdir()) == [source]


def test_conversion_stops_when_asked(tmp_path: Path) -> None:
    source = saved(tmp_path / "a.pt", state())
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        convert_pickle(source, tmp_path / "out", cancel=cancel)
    assert list(tmp_path.iterdir()) == [source]


def test_a_child_that_was_killed_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    class Killing(CancelToken):
        """Kills the child when the parent looks after it."""

        def check(self) -> None:
            for task in Path("/proc/self/task").iterdir():
                for child in (task / "children").read_text().split():
                    os.kill(int(child), signal.SIGKILL)

    if not Path("/proc/self/task").exists():
        pytest.skip("children are found in /proc, which is Linux's")
    source = saved(tmp_path / "a.pt", state())
    with pytest.raises(CheckpointError, match=r"a\.pt made the process that read it end: do not trust it"):
        convert_pickle(source, tmp_path / "out", cancel=Killing())
    assert list(tmp_path.iterdir()) == [source]


def test_the_child_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    source, out = saved(tmp_path / "a.pt", state()), tmp_path / "out.safetensors"
    command = [sys.executable, "-P", pickle_child.__file__, source, out, str(1 << 30)]
    with subprocess.Popen([*map(str, command)], stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.close()  # as the system does when that process is gone
        assert child.wait(30) == 1 and not out.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="no bound on the size of a file there")
def test_a_disk_that_does_not_take_the_weights_is_not_blamed_on_the_pickle(tmp_path: Path) -> None:
    import resource

    source = saved(tmp_path / "a.pt", {"w": torch.zeros(1 << 16)})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(CheckpointError, match=r"out cannot be written: File too large"):
            convert_pickle(source, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("content", [{}, {"epoch": 3}, [1, 2], 3])
def test_a_pickle_without_tensors_says_so(content: object, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="holds no tensors"):
        convert_pickle(saved(tmp_path / "a.pt", content), tmp_path / "out")


def test_broken_pickles_are_one_sentence(tmp_path: Path) -> None:
    cut = tmp_path / "cut.bin"
    cut.write_bytes(pickle.dumps(dict.fromkeys(range(50), "text"))[:60])
    hollow = tmp_path / "hollow.bin"
    with zipfile.ZipFile(hollow, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00.")
    for path in (cut, hollow):
        with pytest.raises(CheckpointError) as raised:
            convert_pickle(path, tmp_path / "out")
        assert str(raised.value).startswith(path.name) and "\n" not in str(raised.value)


def test_what_is_no_pickle_and_several_models_are_said(tmp_path: Path) -> None:
    model = tiny.write(tmp_path / "model")
    with pytest.raises(CheckpointError, match="is no pickle"):
        convert_pickle(model / "model.safetensors", tmp_path / "out")
    with pytest.raises(CheckpointError, match="holds no pickle"):
        convert_pickle(model, tmp_path / "out")
    for name in ("a.pt", "b.pt"):
        saved(tmp_path / "two" / name, state())
    with pytest.raises(CheckpointError, match=r"several pickles \(a\.pt, b\.pt\)"):
        convert_pickle(tmp_path / "two", tmp_path / "out")
    with pytest.raises(CheckpointError, match="choose a new folder"):
        convert_pickle(tmp_path / "two" / "a.pt", model)


def test_an_adapter_in_a_pickle_comes_out_as_an_adapter(tmp_path: Path) -> None:
    folder, tensors = gpt2_adapter(tmp_path / "adapter")
    (folder / "adapter_model.safetensors").unlink()
    saved(folder / "adapter_model.bin", {name: torch.from_numpy(tensor) for name, tensor in tensors.items()})
    convert_pickle(folder, tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"adapter_config.json", "adapter_model.safetensors"}
    with open_checkpoint(tmp_path / "out", assume={"base": tiny.write(tmp_path / "base")}) as checkpoint:
        assert checkpoint.info.refusal is None


def test_an_entry_of_the_hubs_cache_is_its_snapshot(tmp_path: Path) -> None:
    entry = tmp_path / "models--someone--tiny"
    saved(entry / "snapshots" / "abc" / "pytorch_model.bin", state())
    assert is_pickle(entry)
    convert_pickle(entry, tmp_path / "out")
    assert_same_weights(tmp_path / "out")
