"""Statistics, pictures and singular values of tensors read in pieces, against numpy on the whole of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file

from core_model.analysis.singular_values import MAX_SIDE, singular_values
from core_model.analysis.tensor_statistics import N_BINS, tensor_statistics
from core_model.analysis.tensor_view import tensor_view
from core_model.cancel import CancelToken
from core_model.checkpoint.shards import TensorStore, open_files
from core_model.errors import Cancelled, CheckpointError, CoreError
from core_model.pieces import HeldArray, Numbers, Product, as_matrix, read_block


@dataclass(frozen=True, eq=False)
class Torn(HeldArray):
    """An array that comes in pieces of a length of the test's choosing."""

    step: int = 1

    def pieces(self, begin: int = 0, end: int | None = None) -> Iterator[tuple[slice, Numbers]]:
        end = self.values.size if end is None else end
        for first in range(begin, end, self.step):
            part = slice(first, min(first + self.step, end))
            yield part, self.values.reshape(-1)[part]


def normal(*shape: int, mean: float = 0.0, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(mean, 1.0, shape).astype(np.float32)


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[TensorStore]:
    import torch

    values = torch.from_numpy(normal(300, 500))
    types = {
        "float64": torch.float64,
        "bfloat16": torch.bfloat16,
        "float16": torch.float16,
        "float8": torch.float8_e4m3fn,
    }
    tensors = {name: values.to(dtype) for name, dtype in types.items()}
    tensors["int32"] = torch.arange(-1000, 1000, dtype=torch.int32) * 1_000_003
    tensors["bool"] = torch.tensor([True, False, False])
    tensors["empty"] = torch.zeros(0, 4)
    tensors["number"] = torch.tensor(2.5)
    save_file(tensors, tmp_path / "model.safetensors")
    store = open_files([tmp_path / "model.safetensors"])
    yield store
    store.close()


@pytest.mark.parametrize("name", ["float64", "bfloat16", "float16", "float8", "int32", "bool", "number"])
def test_statistics_of_every_stored_format_are_those_of_the_whole_tensor(stored: TensorStore, name: str):
    import torch
    from safetensors import safe_open

    with safe_open(stored.files[0], "pt") as file:
        whole = file.get_tensor(name).to(torch.float64).numpy()
    found = tensor_statistics(stored.tensor(name))
    assert (found.minimum, found.maximum) == (whole.min(), whole.max())
    assert found.mean == pytest.approx(whole.mean(), rel=1e-12, abs=1e-12)
    assert found.std == pytest.approx(whole.std(), rel=1e-12, abs=1e-12)
    assert found.norm == pytest.approx(np.linalg.norm(whole), rel=1e-12)
    assert (found.n_zero, found.n_elements, found.n_finite) == ((whole == 0).sum(), whole.size, whole.size)
    assert found.counts.sum() == whole.size
    if len(found.counts) > 1:
        np.testing.assert_array_equal(found.counts, np.histogram(whole, bins=N_BINS)[0])


@given(
    values=st.lists(st.floats(width=32, allow_subnormal=False), max_size=40),
    step=st.integers(1, 9),
)
def test_where_pieces_end_changes_nothing(values: list[float], step: int):
    array = np.array(values, dtype=np.float32)
    found = tensor_statistics(Torn(array, step))
    finite = array[np.isfinite(array)].astype(np.float64)
    assert found.n_nan == np.isnan(array).sum() and found.n_infinite == np.isinf(array).sum()
    assert found.counts.sum() == found.n_finite == finite.size
    assert found.norm == pytest.approx(np.sqrt(np.square(finite).sum()))
    if finite.size:
        assert (found.minimum, found.maximum) == (finite.min(), finite.max())
        assert found.mean == pytest.approx(finite.mean(), rel=1e-9, abs=1e-9 * np.abs(finite).max())
        assert found.std == pytest.approx(finite.std(), rel=1e-6, abs=1e-9 * np.abs(finite).max())


@given(
    shape=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    step=st.integers(1, 9),
    data=st.data(),
)
def test_every_pixel_is_the_mean_or_the_extreme_of_its_own_cells(shape, size, step: int, data: st.DataObject):
    values = normal(*shape)
    (top, bottom), (left, right) = (
        sorted(data.draw(st.sets(st.integers(0, n), min_size=2, max_size=2))) for n in shape
    )
    part = values[top:bottom, left:right].astype(np.float64)
    for pooling in ("mean", "extreme"):
        view = tensor_view(Torn(values, step), rows=(top, bottom), cols=(left, right), size=size, pooling=pooling)
        assert view is not None
        per = tuple(-(-there // most) for most, there in zip(size, part.shape, strict=True))
        n = tuple(-(-there // cells) for there, cells in zip(part.shape, per, strict=True))
        assert view.cells == per
        assert view.values.shape == n and view.exact == (n == part.shape)
        for y, x in np.ndindex(n):
            own_rows = np.arange(part.shape[0]) // per[0] == y
            own_cols = np.arange(part.shape[1]) // per[1] == x
            cells = part[np.ix_(own_rows, own_cols)].ravel()
            expected = cells.mean() if pooling == "mean" else cells[np.argmax(np.abs(cells))]
            assert view.values[y, x] == pytest.approx(expected, rel=1e-6)


def test_a_mean_far_from_zero_keeps_the_digits_of_the_spread():
    values = 1e8 + normal(200, 200).astype(np.float64)
    assert tensor_statistics(HeldArray(values)).std == pytest.approx(values.std(), rel=1e-9)


@pytest.mark.parametrize(
    "values", [[3.0, 3.0], [1.0, np.nextafter(1.0, 2.0)], [-1.7e308, 1.7e308], [0.0, 5e-324], [2**62, 2**62 + 1]]
)
def test_a_range_of_any_width_has_a_histogram(values: list[float]):
    found = tensor_statistics(HeldArray(np.array(values)))
    assert found.counts.sum() == 2
    assert len(found.edges) == len(found.counts) + 1
    assert found.edges[0] == found.minimum and found.edges[-1] == found.maximum


def test_without_a_finite_number_nothing_but_counts_is_told(stored: TensorStore):
    for tensor, n in ((stored.tensor("empty"), 0), (HeldArray(np.array([np.nan, np.inf])), 2)):
        found = tensor_statistics(tensor)
        assert (found.n_elements, found.n_finite, found.counts.size, found.norm) == (n, 0, 0, 0.0)
        assert np.isnan([found.minimum, found.maximum, found.mean, found.std]).all()
    assert tensor_view(stored.tensor("empty"), size=(4, 4)) is None


def test_cells_without_a_finite_number_are_missing_and_others_leave_it_out():
    values = np.array([[1.0, np.nan, -3.0, np.inf], [2.0, np.nan, 2.0, np.inf]])
    view = tensor_view(HeldArray(values), size=(1, 4), pooling="mean")
    assert view is not None
    assert view.missing.tolist() == [[False, True, False, True]]
    assert view.values[0, [0, 2]].tolist() == [1.5, -0.5]
    view = tensor_view(HeldArray(values), size=(1, 2))
    assert view is not None and view.values.tolist() == [[2.0, -3.0]]


@pytest.mark.parametrize(
    ("shape", "matrix"),
    [((), (1, 1)), ((5,), (1, 5)), ((2, 9), (2, 9)), ((768, 3, 16, 16), (768, 768)), ((32, 64, 48), (2048, 48))],
)
def test_any_tensor_has_rows_and_columns(shape: tuple[int, ...], matrix: tuple[int, int]):
    assert as_matrix(shape) == matrix


@given(begin=st.integers(0, 35), n=st.integers(0, 35), wide=st.booleans())
def test_a_product_computes_the_elements_that_are_asked_for(begin: int, n: int, wide: bool):
    left, right = normal(5, 2), normal(2, 7, seed=1)
    end = min(begin + n, 35)
    pieces = list(Product(left, right).pieces(begin, end))
    assert sum(part.stop - part.start for part, _ in pieces) == max(end - begin, 0)
    for part, values in pieces:
        np.testing.assert_allclose(values, (left @ right).reshape(-1)[part], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("cols", [slice(0, 64), slice(3, 5), slice(10, 60)])
def test_a_block_is_cut_out_of_the_file(cols: slice):
    values = normal(20, 64)
    np.testing.assert_array_equal(read_block(Torn(values, 7), slice(2, 9), cols), values[2:9, cols])


@pytest.mark.parametrize("shape", [(40, 9), (9, 40), (12, 12), (7,), (3, 4, 5)])
def test_singular_values_agree_with_the_decomposition(shape: tuple[int, ...]):
    values = normal(*shape)
    expected = np.linalg.svd(values.reshape(as_matrix(shape)).astype(np.float64), compute_uv=False)
    np.testing.assert_allclose(singular_values(Torn(values, 11)), expected, rtol=0, atol=1e-7 * expected[0])


def test_singular_values_say_what_they_cannot_do():
    side = MAX_SIDE + 1
    with pytest.raises(
        CoreError, match=f"{side} x {side} are not computed: the smaller side may be at most {MAX_SIDE}"
    ):
        singular_values(HeldArray(np.broadcast_to(np.float32(0), (side, side))))
    with pytest.raises(CoreError, match="NaN"):
        singular_values(HeldArray(np.array([[np.nan, 1.0]])))


def test_all_of_it_stops_between_pieces():
    cancel = CancelToken()
    cancel.cancel()
    tensor = HeldArray(normal(4, 4))
    for work in (
        tensor_statistics,
        singular_values,
        lambda tensor, cancel: tensor_view(tensor, size=(2, 2), cancel=cancel),
    ):
        with pytest.raises(Cancelled):
            work(tensor, cancel=cancel)


def test_progress_goes_up_to_the_end():
    told: list[float] = []
    tensor_statistics(Torn(normal(100, 100), 700), progress=told.append)
    assert told == sorted(told) and told[-1] == 1.0
    told.clear()
    tensor_view(HeldArray(normal(600, 600)), size=(30, 30), progress=told.append)
    assert told == sorted(told) and told[-1] == 1.0


def test_a_few_megabytes_are_held_however_large_the_tensor_is(tmp_path: Path):
    import torch

    save_file({"w": torch.zeros(2048, 8192, dtype=torch.bfloat16)}, tmp_path / "model.safetensors")
    store = open_files([tmp_path / "model.safetensors"])
    tracemalloc.start()
    tensor_statistics(store.tensor("w"))
    tensor_view(store.tensor("w"), size=(512, 512))
    tensor_view(store.tensor("w"), cols=(100, 700), size=(512, 512))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    store.close()
    assert peak < 24 << 20  # 32 MiB are stored


def test_a_file_that_changes_meanwhile_is_said_to_have_changed(stored: TensorStore):
    path = stored.files[0]
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(CheckpointError, match="has changed since it was opened"):
        tensor_statistics(stored.tensor("float64"))
