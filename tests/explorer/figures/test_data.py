from __future__ import annotations

import csv
import io
from types import SimpleNamespace

import numpy as np
import pytest

from core_model.cancel import CancelToken
from core_model.errors import Cancelled
from explorer.figures.data import CORNER, AttentionTable, csv_text, estimated_bytes, save_table
from explorer.figures.files import ExportError


def table(provenance, weights, masked=None, *, rows=None, cols=None, queries=None, keys=None) -> AttentionTable:
    weights = np.asarray(weights, dtype=np.float32)
    masked = np.zeros(weights.shape, dtype=bool) if masked is None else masked
    n_rows, n_cols = weights.shape
    rows, cols = rows or (0, n_rows), cols or (0, n_cols)
    return AttentionTable(
        provenance=provenance,
        rows=rows,
        cols=cols,
        query_tokens=queries or tuple(f"q{index}" for index in range(n_rows)),
        key_tokens=keys or tuple(f"k{index}" for index in range(n_cols)),
        read=lambda start, stop: (weights[start - rows[0] : stop - rows[0]], masked[start - rows[0] : stop - rows[0]]),
    )


def ignore(fraction: float) -> None:
    pass


def read_csv(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_rows_of_the_csv_are_queries_and_columns_are_keys(provenance):
    text = csv_text(table(provenance, [[1, 2, 3], [4, 5, 6]]), CancelToken(), ignore)
    assert read_csv(text) == [
        [CORNER, "0:k0", "1:k1", "2:k2"],
        ["0:q0", "1.0", "2.0", "3.0"],
        ["1:q1", "4.0", "5.0", "6.0"],
    ]


def test_numbers_of_the_csv_read_back_as_the_same_float32(causal_weights, provenance):
    weights, _ = causal_weights(40)
    weights[3, 1] = 1.2345678e-30
    rows = read_csv(csv_text(table(provenance, weights), CancelToken(), ignore))
    assert np.array_equal(np.array([row[1:] for row in rows[1:]], dtype=np.float32), weights)


def test_masked_cells_of_the_csv_are_empty_and_zeros_are_not(provenance):
    weights, masked = [[0.0, 0.0]], np.array([[False, True]])
    assert read_csv(csv_text(table(provenance, weights, masked), CancelToken(), ignore))[1] == ["0:q0", "0.0", ""]


def test_tokens_with_commas_quotes_and_line_breaks_survive_the_csv(provenance):
    strange = (" the", ",", '"', "\n", "=1+1", "中")
    text = csv_text(table(provenance, np.zeros((6, 6)), queries=strange, keys=strange), CancelToken(), ignore)
    rows = read_csv(text)
    assert rows[0][1:] == [f"{index}:{token}" for index, token in enumerate(strange)]
    assert [row[0] for row in rows[1:]] == rows[0][1:]
    assert text.endswith("\r\n")


def test_a_part_of_the_matrix_keeps_its_indices(provenance, tmp_path):
    part = table(provenance, [[1, 2]], rows=(7, 8), cols=(4, 6))
    assert read_csv(csv_text(part, CancelToken(), ignore)) == [[CORNER, "4:k0", "5:k1"], ["7:q0", "1.0", "2.0"]]
    save_table(part, tmp_path / "part.npz", "npz", CancelToken(), ignore)
    with np.load(tmp_path / "part.npz", allow_pickle=False) as archive:
        assert (archive["query_start"], archive["key_start"]) == (7, 4)


def test_the_npz_holds_weights_mask_tokens_and_source_without_pickles(causal_weights, provenance, tmp_path):
    weights, masked = causal_weights(11)
    save_table(table(provenance, weights, masked), tmp_path / "a.npz", "npz", CancelToken(), ignore)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert archive["attention"].dtype == np.float32
        assert np.array_equal(archive["attention"], weights)
        assert np.array_equal(archive["masked"], masked)
        assert archive["query_tokens"].tolist() == [f"q{index}" for index in range(11)]
        assert archive["key_tokens"].tolist() == [f"k{index}" for index in range(11)]
        assert {name: archive[name].item() for name in ("model", "site", "layer", "head", "header_sha256", "text")} == {
            "model": "tiny-lm",
            "site": "decoder.self",
            "layer": 1,
            "head": 2,
            "header_sha256": "0123456789abcdef",
            "text": "the cat sat",
        }


@pytest.mark.parametrize("format", ["csv", "npz"])
def test_a_table_of_many_blocks_is_the_same_as_one_of_a_single_block(
    causal_weights, provenance, tmp_path, monkeypatch, format
):
    weights, masked = causal_weights(23)
    whole, pieces = tmp_path / f"whole.{format}", tmp_path / f"pieces.{format}"
    save_table(table(provenance, weights, masked), whole, format, CancelToken(), ignore)
    monkeypatch.setattr("explorer.figures.data._BLOCK_CELLS", 100)
    fractions: list[float] = []
    save_table(table(provenance, weights, masked), pieces, format, CancelToken(), fractions.append)
    assert pieces.read_bytes() == whole.read_bytes()
    assert len(fractions) == 6 and fractions == sorted(fractions) and fractions[-1] == 1.0


@pytest.mark.parametrize("format", ["csv", "npz"])
def test_a_cancelled_table_leaves_no_file(provenance, tmp_path, monkeypatch, format):
    monkeypatch.setattr("explorer.figures.data._BLOCK_CELLS", 1)
    cancel = CancelToken()
    with pytest.raises(Cancelled):
        save_table(
            table(provenance, np.zeros((5, 5))),
            tmp_path / f"a.{format}",
            format,
            cancel,
            lambda fraction: cancel.cancel() if fraction > 0.5 else None,
        )
    assert not list(tmp_path.iterdir())


def test_a_table_that_the_disk_cannot_hold_is_refused_before_anything_is_computed(provenance, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1024))
    with pytest.raises(ExportError, match=r"a.npz takes about 44.9 KiB, and its disk has 1 KiB free"):
        save_table(table(provenance, np.zeros((100, 92))), tmp_path / "a.npz", "npz", CancelToken(), ignore)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("format", ["csv", "npz"])
def test_the_size_told_before_is_about_the_size_on_disk(causal_weights, provenance, tmp_path, format):
    weights, _ = causal_weights(300)
    weights = np.roll(weights, 150, axis=0) + np.float32(1e-3)
    save_table(table(provenance, weights), tmp_path / f"a.{format}", format, CancelToken(), ignore)
    size = (tmp_path / f"a.{format}").stat().st_size
    assert size == pytest.approx(estimated_bytes((300, 300), format), rel=0.3)
