"""inspect: what a checkpoint is, for people or as JSON, without running it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core_model.checkpoint import Checkpoint, open_checkpoint
from core_model.results import ModelInfo, TensorInfo, TensorStatistics
from explorer.verbs.digests import file_digests
from explorer.verbs.progress import ProgressLine
from explorer.verbs.source import add_path, assumed
from explorer.verbs.tensor_report import (
    histogram_rows,
    read_all_statistics,
    read_statistics,
    statistics_rows,
    statistics_values,
    tensor_rows,
    tensor_values,
)
from explorer.viewmodels.sizes import bytes_text

_EPILOG = """\
The text lists facts with their origin: stated by the checkpoint's config, inferred from shapes and names, or unknown.
The JSON has one object with the keys of the text and "tensors", one entry a stored tensor. "header_sha256" is of
header and config: two models of one shape share it. No weights are read unless asked for:
  --sha256  of each weights file, as sha256sum prints it; in the JSON under "sha256", by path
  --health  looks at every value for NaN, Inf, rows of zeros and signs that nobody trained them; see "warnings"
  --tensor  tells of one alone: range, mean, spread (std), norm, zeros and histogram ("counts" between "edges") of its
            finite numbers
  --statistics  the same of every tensor, or of those whose names fit; in the JSON under "statistics" of each that was
            read, null for types whose values cannot be shown

examples:
  transformer-explorer inspect ./gpt2
  transformer-explorer inspect ./gpt2 --tensor wte.weight
  transformer-explorer inspect ./gpt2 --json --statistics "h.0.*" | jq '.tensors[] | [.name, .statistics.norm]'
  transformer-explorer inspect ./gpt2 --json | jq '.tensors[] | select(.site == null) | .name'
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = "Say what a checkpoint is: family, sizes, attention sites, missing tensors, warnings."
    parser.epilog = _EPILOG
    add_path(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object, every tensor included")
    parser.add_argument("--health", action="store_true", help="read all weights and say what is wrong with them")
    parser.add_argument("--sha256", action="store_true", help="read all weights files and print the sha256 of each")
    parser.add_argument("--tensor", metavar="NAME", help="read one tensor and say what is in it")
    parser.add_argument(
        "--statistics", nargs="?", const="*", metavar="NAMES", help="read all tensors, or those whose names fit (*, ?)"
    )
    parser.add_argument("--tensors", action="store_true", help="list every tensor in the text too")


def run(arguments: argparse.Namespace) -> int:
    checkpoint = open_checkpoint(arguments.path, assume=dict(assumed(arguments)))
    try:
        if arguments.health:
            with ProgressLine("checking") as progress:
                checkpoint.check_health(progress=progress.update)
        if arguments.tensor is not None:
            _print_tensor(checkpoint, arguments.tensor, as_json=arguments.json)
        else:
            _print_all(checkpoint, arguments)
    finally:
        checkpoint.close()
    return 0


def _digests(checkpoint: Checkpoint) -> dict[Path, str]:
    """The sha256 of each file that holds weights."""
    with ProgressLine("hashing") as progress:
        return file_digests((tensor.file for tensor in checkpoint.tensors.values()), progress.update)


def _print_all(checkpoint: Checkpoint, arguments: argparse.Namespace) -> None:
    info, tensors = checkpoint.info, checkpoint.tensors
    digests = _digests(checkpoint) if arguments.sha256 else {}
    pattern: str | None = arguments.statistics
    numbers = {} if pattern is None else read_all_statistics(checkpoint, pattern)
    if arguments.json:
        found = report(info, tensors, numbers) | _plain({"sha256": digests} if digests else {})
        print(json.dumps(found, indent=2))
        return
    rows = [(path.name, digest) for path, digest in digests.items()]
    found = [
        *lines(info, tensors, all_tensors=arguments.tensors),
        *_section("statistics of the finite numbers", statistics_rows(numbers)),
        *_section("sha256 of the weights files", rows),
    ]
    print("\n".join(found))


def _print_tensor(checkpoint: Checkpoint, name: str, *, as_json: bool) -> None:
    numbers = read_statistics(checkpoint, name)
    info = checkpoint.tensors[name]
    if as_json:
        print(json.dumps(_plain(tensor_values(info, numbers)), indent=2))
        return
    found = [name, *_table(tensor_rows(info, numbers)), *_section("histogram", histogram_rows(numbers))]
    print("\n".join(found))


def report(
    info: ModelInfo, tensors: Mapping[str, TensorInfo], numbers: Mapping[str, TensorStatistics | None]
) -> dict[str, Any]:
    """The facts as JSON values: the fields of ModelInfo, and of TensorInfo under "tensors", with what was read."""
    rows = [{**asdict(tensor), **_read(name, numbers)} for name, tensor in tensors.items()]
    return _plain({**asdict(info), "tensors": rows})


def _read(name: str, numbers: Mapping[str, TensorStatistics | None]) -> dict[str, Any]:
    """The statistics of a tensor that was read."""
    if name not in numbers:
        return {}
    found = numbers[name]
    return {"statistics": None if found is None else statistics_values(found)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def lines(info: ModelInfo, tensors: Mapping[str, TensorInfo], *, all_tensors: bool) -> Iterator[str]:
    """The facts as a person reads them."""
    yield info.name
    yield f"  {info.summary}"
    yield ""
    yield from _table(_overview(info))
    yield from _section("attention sites", _sites(info))
    yield from _section("facts", [(fact.name, fact.value, fact.origin) for fact in info.facts])
    for title, names in (
        ("tied", info.tied),
        ("missing: the model cannot run without", info.missing),
        ("of the wrong shape", info.misshaped),
        ("not used by the model", info.unexpected),
        ("warnings", info.warnings),
    ):
        yield from _section(title, [(name,) for name in names])
    total = bytes_text(sum(tensor.n_bytes for tensor in tensors.values()))
    rows = [_tensor_row(tensor) for tensor in tensors.values()] if all_tensors else []
    yield ""
    word = "tensor" if len(tensors) == 1 else "tensors"
    yield f"{len(tensors)} {word}, {total}" + ("" if all_tensors else "; --tensors lists them")
    yield from _table(rows)


def _overview(info: ModelInfo) -> list[Sequence[str]]:
    family = info.family or "unknown"
    rows: list[Sequence[str]] = [
        ("path", str(info.path)),
        ("family", f"{family} ({info.architecture})" if info.architecture else family),
        ("parameters", f"{info.n_parameters:,}"),
        ("stored", f"{bytes_text(info.n_bytes)} as {info.dtype}"),
        *([("trained", info.run.progress)] if info.run else []),
        ("header sha256", f"{info.header_sha256} (of header and config, not of the weights: --sha256)"),
    ]
    if info.refusal is not None:
        return [*rows, ("attention", f"not offered: {info.refusal}")]
    return [*rows, ("input", info.input_length)]


def _sites(info: ModelInfo) -> list[Sequence[str]]:
    return [
        (
            site.site,
            site.label,
            f"{site.n_layers} layers",
            f"{site.n_heads} heads" + (f" on {site.n_key_heads} key heads" if site.n_key_heads != site.n_heads else ""),
            f"mask: {site.mask}",
        )
        for site in info.sites
    ]


def _tensor_row(tensor: TensorInfo) -> Sequence[str]:
    shape = " x ".join(map(str, tensor.shape)) or "one number"
    return tensor.name, shape, tensor.dtype, bytes_text(tensor.n_bytes), tensor.file.name, tensor.site or "-"


def _section(title: str, rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A title and its rows; nothing where there are none."""
    rows = list(rows)
    if rows:
        yield ""
        yield title
        yield from _table(rows)


def _table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Rows indented, their columns as wide as their widest cell; line breaks in a cell become spaces."""
    rows = [[" ".join(cell.split()) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield ("  " + "  ".join(cells)).rstrip()
