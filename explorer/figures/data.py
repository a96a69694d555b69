"""The numbers behind a picture: CSV for spreadsheets, NPZ for numpy. Exact weights, block by block, at any length.

CSV (RFC 4180, UTF-8): one row a query, one column a key. The first row and the first column name the tokens as
`index:token`, the corner says which is which. Masked cells are empty, for masked is not zero. A number reads back as
the same float32.

NPZ: `attention` float32 [n_query, n_key] with 0 where masked; `masked` bool of that shape; `query_tokens` and
`key_tokens`; `query_start` and `key_start`, the index of the first of each; and where it all comes from, one entry a
fact (FACTS).
`numpy.load(path, allow_pickle=False)` reads it.
"""

from __future__ import annotations

import csv
import io
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TextIO, TypeAlias

import numpy as np

from core_model.cancel import CancelToken, Progress
from core_model.results import BoolArray, FloatArray
from explorer.figures.files import ExportError, whole_file
from explorer.figures.spec import Provenance
from explorer.viewmodels.records import Span
from explorer.viewmodels.sizes import bytes_text

Block: TypeAlias = tuple[FloatArray, BoolArray]
"""Weights and masked cells of some rows: [r, n_key] each."""

FACTS = ("model", "family", "site", "layer", "head", "dtype", "header_sha256", "text", "target", "file")
"""Fields of Provenance that an NPZ holds by name."""
CORNER = "query (rows) \\ key (columns)"
_BLOCK_CELLS = 1 << 20
_BYTES_PER_CELL = {"csv": 12, "npz": 5}


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionTable:
    """Some rows and columns of one head's attention, read as they are written."""

    provenance: Provenance
    rows: Span
    cols: Span
    query_tokens: tuple[str, ...]
    """Of the rows, as decoded."""
    key_tokens: tuple[str, ...]
    read: Callable[[int, int], Block]
    """The exact weights of queries [start, stop) over the columns, and which of them are masked."""

    def __post_init__(self) -> None:
        assert len(self.query_tokens) == self.rows[1] - self.rows[0]
        assert len(self.key_tokens) == self.cols[1] - self.cols[0]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.query_tokens), len(self.key_tokens)

    def blocks(self, cancel: CancelToken, progress: Progress) -> Iterator[tuple[int, Block]]:
        """(first query, its block) from top to bottom. Raises Cancelled between blocks."""
        start, stop = self.rows
        height = max(1, _BLOCK_CELLS // self.shape[1])
        for top in range(start, stop, height):
            cancel.check()
            yield top, self.read(top, min(stop, top + height))
            progress((min(stop, top + height) - start) / (stop - start))


def estimated_bytes(shape: tuple[int, int], format: str) -> int:
    """About how large a table of that many rows and columns gets on disk."""
    return shape[0] * shape[1] * _BYTES_PER_CELL[format]


def save_table(table: AttentionTable, path: Path, format: str, cancel: CancelToken, progress: Progress) -> None:
    """Write the table as "csv" or "npz", whole or not at all. Raises ExportError when the disk refuses, Cancelled."""
    _require_room(path, estimated_bytes(table.shape, format))
    with whole_file(path) as file:
        if format == "npz":
            _write_npz(table, file, cancel, progress)
        else:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            _write_csv(table, text, cancel, progress)
            text.detach()


def _require_room(path: Path, needed: int) -> None:
    """Refuse at once what would fill the disk after minutes of work."""
    if not path.absolute().parent.is_dir():
        return  # opening the file says so
    free = shutil.disk_usage(path.absolute().parent).free
    if needed > free:
        raise ExportError(
            f"{path} takes about {bytes_text(needed)}, and its disk has {bytes_text(free)} free: "
            "choose another disk, or fewer rows and columns."
        )


def csv_text(table: AttentionTable, cancel: CancelToken, progress: Progress) -> str:
    """The CSV as text, for the clipboard."""
    text = io.StringIO(newline="")
    _write_csv(table, text, cancel, progress)
    return text.getvalue()


def _write_csv(table: AttentionTable, file: TextIO, cancel: CancelToken, progress: Progress) -> None:
    writer = csv.writer(file)
    writer.writerow([CORNER, *(f"{index}:{token}" for index, token in enumerate(table.key_tokens, table.cols[0]))])
    for top, (weights, masked) in table.blocks(cancel, progress):
        cells = weights.astype(str)  # the shortest text that reads back as the same float32
        cells[masked] = ""
        for query, row in enumerate(cells.tolist(), top):
            writer.writerow([f"{query}:{table.query_tokens[query - table.rows[0]]}", *row])
    file.flush()


def _write_npz(table: AttentionTable, file: BinaryIO, cancel: CancelToken, progress: Progress) -> None:
    n_rows, n_cols = table.shape
    packed = np.empty(
        (n_rows, -(-n_cols // 8)), dtype=np.uint8
    )  # a bit a cell: the mask follows the weights in the file
    with zipfile.ZipFile(file, "w") as archive:
        with _entry(archive, "attention") as entry:
            _write_header(entry, np.dtype("<f4"), table.shape)
            for top, (weights, masked) in table.blocks(cancel, progress):
                entry.write(weights.astype("<f4").tobytes())
                packed[top - table.rows[0] :][: len(masked)] = np.packbits(masked, axis=1)
        with _entry(archive, "masked") as entry:
            _write_header(entry, np.dtype(bool), table.shape)
            for row in packed:
                entry.write(np.unpackbits(row, count=n_cols).tobytes())
        for name, value in _small_entries(table).items():
            with _entry(archive, name) as entry:
                np.lib.format.write_array(entry, np.asarray(value), allow_pickle=False)


def _small_entries(table: AttentionTable) -> dict[str, object]:
    return {
        "query_tokens": np.array(table.query_tokens, dtype=str),
        "key_tokens": np.array(table.key_tokens, dtype=str),
        "query_start": table.rows[0],
        "key_start": table.cols[0],
        **{name: getattr(table.provenance, name) for name in FACTS},
    }


def _entry(archive: zipfile.ZipFile, name: str) -> BinaryIO:
    """A new member of the archive, dated as the ZIP format begins: the same numbers make the same file."""
    member = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    return archive.open(member, "w", force_zip64=True)  # pyright: ignore[reportReturnType]


def _write_header(entry: BinaryIO, dtype: np.dtype, shape: tuple[int, int]) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(entry, header)
