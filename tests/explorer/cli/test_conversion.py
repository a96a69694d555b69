from __future__ import annotations

import json

from core_model.checkpoint import open_checkpoint
from tests.core_model.checkpoint import tiny
from tests.explorer.cli.conftest import Cli


def test_a_checkpoint_is_written_as_the_family_asked_for(cli: Cli, tmp_path):
    base, out = tiny.write(tmp_path / "base"), tmp_path / "out"
    done = cli("convert", base, "--to", "gpt_bigcode", "--out", out)
    assert done.status == 0 and str(out) in done.out
    assert json.loads((out / "config.json").read_text())["model_type"] == "gpt_bigcode"
    with open_checkpoint(out) as checkpoint:
        assert checkpoint.info.refusal is None


def test_a_family_that_cannot_express_it_is_one_line(cli: Cli, tmp_path):
    done = cli("convert", tiny.write(tmp_path / "base"), "--to", "bert", "--out", tmp_path / "out")
    assert done.status == 2 and done.err.count("\n") == 1 and "BERT" in done.err


def test_a_pickle_is_written_as_safetensors_and_then_as_a_family(cli: Cli, tmp_path):
    import torch

    folder = tmp_path / "old"
    folder.mkdir()
    torch.save({name: torch.from_numpy(tensor) for name, tensor in tiny.tensors().items()}, folder / "model.pt")
    (folder / "config.json").write_text(json.dumps(tiny.CONFIG))
    refused = cli("convert", folder, "--to", "gpt2", "--out", tmp_path / "new")
    assert refused.status == 2 and "--to" in refused.err
    assert cli("convert", folder, "--out", tmp_path / "new").status == 0
    assert cli("convert", tmp_path / "new", "--to", "gpt2", "--out", tmp_path / "newest").status == 0
