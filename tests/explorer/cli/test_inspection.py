from __future__ import annotations

import hashlib
import json
from dataclasses import fields

import numpy as np
import pytest
from safetensors.numpy import save_file

from core_model.checkpoint import open_checkpoint
from core_model.results import ModelInfo, TensorInfo, TensorStatistics
from explorer.samples import SAMPLES_FOLDER
from tests.explorer.cli.conftest import Cli


def test_the_text_names_sizes_sites_facts_and_the_number_of_tensors(cli: Cli, translator):
    done = cli("inspect", translator)
    assert done.status == 0 and done.err == ""
    with open_checkpoint(translator) as checkpoint:
        info, n_tensors = checkpoint.info, len(checkpoint.tensors)
    for expected in (
        info.summary,
        f"{info.n_parameters:,}",
        info.header_sha256,
        f"{n_tensors} tensors",
        info.input_length,
    ):
        assert expected in done.out
    rows = [line.split("  ") for line in done.out.splitlines() if line.startswith("  ")]
    sites = [row[1].strip() for row in rows if row[1].startswith(("encoder.", "decoder."))]
    assert sites == ["encoder.self", "decoder.self", "decoder.cross"]


def test_of_a_run_it_is_said_how_far_it_came(cli: Cli):
    sample = SAMPLES_FOLDER / "tiny-reversal"
    record = json.loads((sample / "run.json").read_text())
    n_done, n_steps = len(record["history"]["loss"]), record["settings"]["steps"]
    (row,) = [line for line in cli("inspect", sample).out.splitlines() if line.startswith("  trained ")]
    assert row.split("  ")[-1].strip() == f"step {n_done} of {n_steps}"
    assert json.loads(cli("inspect", sample, "--json").out)["run"]["step"] == n_done


def test_tensors_are_listed_on_request(cli: Cli, decoder):
    text = cli("inspect", decoder, "--tensors").out
    assert "--tensors" in cli("inspect", decoder).out
    assert "decoder.layers.1.attention.query.weight" in text and "24 x 24" in text


def test_the_json_has_the_fields_of_the_records_and_every_tensor(cli: Cli, decoder):
    found = json.loads(cli("inspect", decoder, "--json").out)
    assert list(found) == [*(field.name for field in fields(ModelInfo)), "tensors"]
    assert list(found["tensors"][0]) == [field.name for field in fields(TensorInfo)]
    with open_checkpoint(decoder) as checkpoint:
        assert [tensor["name"] for tensor in found["tensors"]] == list(checkpoint.tensors)
        assert found["n_bytes"] == checkpoint.info.n_bytes
        assert found["sites"][0]["n_heads"] == checkpoint.info.sites[0].n_heads
    assert found["path"] == str(decoder)


def test_what_cannot_be_opened_is_one_line(cli: Cli, tmp_path):
    done = cli("inspect", tmp_path / "none")
    assert done.status == 2 and done.err.count("\n") == 1 and "none" in done.err


def test_a_checkpoint_of_an_unknown_family_is_shown_with_the_reason_why_it_has_no_attention(cli: Cli, tmp_path):
    save_file({"strange": np.zeros((2, 3), dtype=np.float32)}, tmp_path / "model.safetensors")
    done = cli("inspect", tmp_path)
    assert done.status == 0
    assert "attention" in done.out and "not offered:" in done.out and "1 tensor, 24 B" in done.out


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_the_shape_of_a_tensor_is_written_out(cli: Cli, tmp_path, shape):
    save_file({"strange": np.zeros(shape, dtype=np.float32)}, tmp_path / "model.safetensors")
    expected = {(): "one number", (3,): "3", (2, 3): "2 x 3"}[shape]
    (row,) = [line for line in cli("inspect", tmp_path, "--tensors").out.splitlines() if "strange" in line]
    assert f"strange  {expected}  " in row


def test_health_reads_the_values_and_says_what_is_wrong(cli: Cli, tmp_path):
    save_file({"strange": np.full((2, 3), np.nan, dtype=np.float32)}, tmp_path / "model.safetensors")
    assert "NaN" not in cli("inspect", tmp_path).out
    assert "1 tensor with NaN" in cli("inspect", tmp_path, "--health").out
    assert "NaN" in " ".join(json.loads(cli("inspect", tmp_path, "--health", "--json").out)["warnings"])


def test_an_adapter_is_shown_with_the_base_that_is_given(cli: Cli, tmp_path):
    from tests.core_model.checkpoint import tiny
    from tests.core_model.checkpoint.adapters import gpt2_adapter

    base = tiny.write(tmp_path / "elsewhere" / "model")
    folder, _ = gpt2_adapter(tmp_path / "adapter")
    assert "not offered" in cli("inspect", folder).out
    out = cli("inspect", folder, "--base", base).out
    assert "model + adapter" in out and "merged into 1 weight" in out and "not offered" not in out
    head = ("--text", "3 1 4", "--layer", 1, "--head", 0, "--out")
    assert "--base FOLDER" in cli("attention", folder, *head, tmp_path / "none.csv").err
    for name, more in (("merged.csv", ("--base", base)), ("plain.csv", ())):
        assert cli("attention", folder if more else base, *more, *head, tmp_path / name).status == 0
    assert (tmp_path / "merged.csv").read_text() != (tmp_path / "plain.csv").read_text()


TENSOR = "decoder.layers.1.attention.query.weight"


def test_one_tensor_is_told_with_the_numbers_of_all_its_values(cli: Cli, decoder):
    found = json.loads(cli("inspect", decoder, "--tensor", TENSOR, "--json").out)
    names = [field.name for record in (TensorInfo, TensorStatistics) for field in fields(record)]
    assert list(found) == [*names, "share_zero"]
    with open_checkpoint(decoder) as checkpoint:
        values = checkpoint.read_tensor(TENSOR).astype(np.float64)
    assert (found["shape"], found["n_elements"], found["n_zero"]) == ([24, 24], 576, 0)
    assert (found["minimum"], found["maximum"]) == (values.min(), values.max())
    assert found["std"] == pytest.approx(values.std()) and found["mean"] == pytest.approx(values.mean())
    assert found["norm"] == pytest.approx(np.linalg.norm(values)) and sum(found["counts"]) == 576
    text = cli("inspect", decoder, "--tensor", TENSOR).out
    assert text.startswith(f"{TENSOR}\n") and f"{values.max():.7g}" in text and "histogram" in text


def test_every_tensor_is_told_with_its_numbers_on_request(cli: Cli, tmp_path):
    given = {
        "half.weight": np.array([[0, 1, 2], [0, 0, -3]], dtype=np.float16),
        "whole": np.arange(5, dtype=np.int64),
        "not.finite": np.array([np.nan, np.inf, 4], dtype=np.float32),
    }
    save_file(given, tmp_path / "model.safetensors")
    tensors = json.loads(cli("inspect", tmp_path, "--json", "--statistics").out)["tensors"]
    found = {tensor["name"]: tensor["statistics"] for tensor in tensors}
    for name, values in given.items():
        finite = values[np.isfinite(values)].astype(np.float64)
        numbers = found[name]
        assert (numbers["minimum"], numbers["maximum"]) == (finite.min(), finite.max())
        assert numbers["mean"] == pytest.approx(finite.mean()) and numbers["std"] == pytest.approx(finite.std())
        assert numbers["norm"] == pytest.approx(np.linalg.norm(finite)) and sum(numbers["counts"]) == len(finite)
        assert numbers["share_zero"] == pytest.approx((values == 0).sum() / values.size)
    text = cli("inspect", tmp_path, "--statistics").out
    assert "statistics of the finite numbers" in text and "50.0%" in text


def test_only_the_tensors_whose_names_fit_are_read(cli: Cli, decoder):
    done = cli("inspect", decoder, "--json", "--statistics", "*.1.attention.query.*")
    tensors = json.loads(done.out)["tensors"]
    assert [tensor["name"] for tensor in tensors if "statistics" in tensor] == [
        tensor["name"] for tensor in tensors if ".1.attention.query." in tensor["name"]
    ]
    assert "No tensor fits 'nothing*'" in cli("inspect", decoder, "--statistics", "nothing*").err


def test_values_that_cannot_be_shown_have_no_statistics(cli: Cli, tmp_path):
    header = b'{"packed":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}'
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    (tensor,) = json.loads(cli("inspect", tmp_path, "--json", "--statistics").out)["tensors"]
    assert tensor["statistics"] is None
    assert "packed  -" in cli("inspect", tmp_path, "--statistics").out


def test_a_tensor_without_a_finite_number_has_no_range(cli: Cli, tmp_path):
    save_file({"broken": np.full(3, np.nan, dtype=np.float32)}, tmp_path / "model.safetensors")
    found = json.loads(cli("inspect", tmp_path, "--tensor", "broken", "--json").out)
    assert (found["n_nan"], found["minimum"], found["mean"], found["counts"]) == (3, None, None, [])
    assert "histogram" not in cli("inspect", tmp_path, "--tensor", "broken").out


def test_a_tensor_that_is_not_there_is_met_with_the_nearest_names(cli: Cli, decoder):
    done = cli("inspect", decoder, "--tensor", "layers.1.attention.query")
    assert done.status == 2 and done.err.count("\n") == 1
    assert "There is no tensor 'layers.1.attention.query': did you mean" in done.err and TENSOR in done.err


def test_the_hash_of_the_weights_tells_models_of_one_shape_apart_where_that_of_the_header_does_not(cli: Cli, tmp_path):
    found = []
    for value in (1, 2):
        file = tmp_path / str(value) / "model.safetensors"
        file.parent.mkdir()
        save_file({"strange": np.full((2, 3), value, dtype=np.float32)}, file)
        found.append(json.loads(cli("inspect", file, "--sha256", "--json").out))
        expected = hashlib.sha256(file.read_bytes()).hexdigest()
        assert found[-1]["sha256"] == {str(file): expected}
        assert expected in cli("inspect", file, "--sha256").out and expected not in cli("inspect", file).out
    first, second = found
    assert first["header_sha256"] == second["header_sha256"]


def test_a_path_that_is_not_there_is_named_whole(cli: Cli):
    assert "There is no file or folder runs/nosuch: check the path" in cli("inspect", "runs/nosuch").err


def test_an_unknown_kind_of_model_is_named_and_the_known_ones_are_not_recited(cli: Cli, tmp_path):
    save_file({"strange": np.zeros((2, 3), dtype=np.float32)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"model_type": "perceptron"}')
    out = cli("inspect", tmp_path).out
    (line,) = [line for line in out.splitlines() if "not offered" in line]
    assert "'perceptron'" in line and "only its tensors" in line and "README" in line and len(line) < 250


def test_the_number_of_heads_that_no_file_says_can_be_given(cli: Cli, tmp_path):
    import torch

    encoder = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    weights = {f"layers.0.{name}": tensor.detach().numpy() for name, tensor in encoder.named_parameters()}
    save_file(weights, tmp_path / "model.safetensors")
    assert "--heads N" in cli("inspect", tmp_path).out
    found = json.loads(cli("inspect", tmp_path, "--heads", 4, "--json").out)
    assert found["refusal"] is None and found["sites"][0]["n_heads"] == 4
    assert "'none' is not a number of heads" in cli("inspect", tmp_path, "--heads", "none").err
