"""The model card of a checkpoint: everything its reading and its files tell, as one ModelInfo."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from core_model.checkpoint.facts import head_name, positions_name
from core_model.checkpoint.folder import Location
from core_model.checkpoint.reading import Reading
from core_model.checkpoint.shards import TensorStore
from core_model.config import ModelConfig
from core_model.results import Fact, ModelInfo, Reads, SiteInfo, TensorInfo
from core_model.sites import ATTENTION_SITES
from core_model.wording import counted, some_of

_CONFIG_BYTES = 1 << 20


def describe_tensors(store: TensorStore, reading: Reading) -> dict[str, TensorInfo]:
    """Every stored tensor by name, in the order of the files."""
    sites: Mapping[str, str] = reading.match.sites if reading.match else {}
    return {
        name: TensorInfo(
            name=name,
            shape=entry.shape,
            dtype=entry.dtype.name,
            n_bytes=entry.n_bytes,
            file=store.file_of(name),
            site=sites.get(name),
        )
        for name, entry in store.entries.items()
    }


def describe(
    location: Location, store: TensorStore, reading: Reading, reads: tuple[Reads, ...], warnings: tuple[str, ...]
) -> ModelInfo:
    """The model card; `reads` is what can be given it, `warnings` are added to those of the reading."""
    matched = reading.match
    n_parameters = _n_parameters(store, reading)
    dtype = _dtype(store, reading)
    return ModelInfo(
        name=location.name,
        path=location.path,
        family=reading.family,
        architecture=reading.architecture or reading.model_type,
        summary=_summary(reading, n_parameters, dtype),
        n_parameters=n_parameters,
        n_bytes=sum(entry.n_bytes for entry in store.entries.values()),
        dtype=dtype,
        max_length=reading.config.output_stack.max_length if reading.config else None,
        sites=_sites(reading.config) if reading.config else (),
        facts=(*reading.facts, *_unused_fact(reading)),
        tied=matched.tied if matched else (),
        missing=matched.missing if matched else (),
        unexpected=matched.unexpected if matched else (),
        misshaped=tuple(matched.misshaped) if matched else (),
        warnings=(*location.notes, *store.warnings, *reading.warnings, *warnings),
        refusal=None if reading.problem is None else str(reading.problem),
        needs=reading.needs,
        reads=reads if reading.problem is None else (),
        header_sha256=store.digest(_config_bytes(location)),
    )


def _n_parameters(store: TensorStore, reading: Reading) -> int:
    """Weights of the model, shared ones once; all numbers stored where no model is known."""
    shapes = reading.match.shapes.values() if reading.match else [entry.shape for entry in store.entries.values()]
    return sum(math.prod(shape) for shape in shapes)


def _dtype(store: TensorStore, reading: Reading) -> str:
    """The stored dtypes of the weights, the most frequent first; of all tensors where the model uses none of them."""
    sites = reading.match.sites if reading.match else {}
    used = [name for name in sites if name in store.entries] or store.entries
    counts = Counter(store.entries[name].dtype.name for name in used)
    return ", ".join(name for name, _ in counts.most_common()) or "none"


def _summary(reading: Reading, n_parameters: int, dtype: str) -> str:
    """One line: family, stacks, sizes, positions, head."""
    size = f"{_rounded(n_parameters)} parameters, {dtype}"
    if reading.config is None:
        return f"tensors only, {size}"
    stacks = [
        f"{name} of {counted(stack.n_layers, 'layer')} with {counted(stack.layers[0].attention.n_heads, 'head')}, "
        f"width {stack.d_model}"
        for name, stack in reading.config.stacks.items()
        if stack.layers
    ]
    kind = f"{positions_name(reading.config)} positions, head: {head_name(reading.config, reading.architecture)}"
    return f"{reading.label}: {'; '.join(stacks)}; {kind}; {size}"


def _rounded(count: int) -> str:
    """A count as people say it: 77.4 k, 124 M, 7.24 G."""
    for unit, size in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return str(count)


def _sites(config: ModelConfig) -> tuple[SiteInfo, ...]:
    return tuple(
        SiteInfo(
            site=site,
            label=ATTENTION_SITES[site],
            n_layers=len(specs),
            n_heads=max(spec.n_heads for spec in specs),
            n_key_heads=max(spec.n_key_heads for spec in specs),
            mask=" / ".join(dict.fromkeys(spec.mask.label for spec in specs)),
        )
        for site, specs in config.attention_layers().items()
    )


def _unused_fact(reading: Reading) -> tuple[Fact, ...]:
    """Weights of another head, which checkpoints of the family often carry."""
    if reading.match is None or not reading.match.unused:
        return ()
    names = some_of(reading.match.unused)
    return (Fact(name="stored for other heads", value=names, origin="stated"),)


def _config_bytes(location: Location) -> bytes:
    """What config.json holds, for the checksum; empty without one."""
    if location.config is None or not location.config.is_file():
        return b""
    with location.config.open("rb") as file:
        return file.read(_CONFIG_BYTES)
