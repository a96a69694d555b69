"""Whole model folders broken in one place or a few: the kinds of cases that the fuzzing draws from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from core_model.checkpoint.families import FAMILIES
from core_model.checkpoint.stored_types import STORED_TYPES
from tests.core_model.checkpoint.fuzz import wholes
from tests.core_model.checkpoint.fuzz.wholes import CONFIG, INDEX, PICTURE, PREPROCESSOR, SOUND, WEIGHTS, Folder

Place: TypeAlias = tuple[str | int, ...]


class Case(dict[str, bytes]):
    """A folder that is not printed whole."""

    def __repr__(self) -> str:
        return "\n".join(f"{name} [{len(content)}]: {content[:300]!r}" for name, content in self.items())


_DEEP = "@deep@"
"""Stands in a document for what json.dumps cannot write: more brackets than any reader's stack holds."""

_NUMBERS: Sequence[Any] = (
    *(0, -1, 1, 2, 3, 7, 64, 1000, 1001, 2**15, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**400),
    *(-(2**63), 0.0, -0.0, 0.5, 1.5, -3.25, 1e-320, 1e-8, 1e18, 1e308, float("nan"), float("inf"), float("-inf")),
)
_TEXTS: Sequence[Any] = (
    *(
        "",
        " ",
        "0",
        "1",
        "-1",
        "true",
        "null",
        "nan",
        "\x00",
        "\n",
        "\ud800",
        "é",
        "🙂",
        "x" * 5000,
        "%s",
        "{i}",
        "{0}",
    ),
    *(
        "..",
        ".",
        "/",
        "../../etc/passwd",
        "/etc/passwd",
        "C:\\x",
        "model.safetensors",
        "config.json",
        "__import__('os')",
    ),
    *(
        "gelu",
        "relu",
        "linear",
        "dynamic",
        "yarn",
        "llama3",
        "longrope",
        "default",
        "F32",
        "BF16",
        "I4",
        "LORA",
        "dora",
    ),
    *("full_attention", "sliding_attention", "float32", "(a+)+$", "[", "\\"),
)
_OTHERS: Sequence[Any] = (
    *(None, True, False, [], {}, [[]], [{}], {"": ""}, [0], [1, 2], [-1], [2**62, 2**62], [1] * 70, [0] * 3, [None]),
    *({"a": 1}, {"type": "linear", "factor": 2.0}, {"rope_type": "yarn", "factor": 1e9}, {"0": "a", "1": "b"}, _DEEP),
    *([["full_attention"] * 2], ["full_attention", "sliding_attention"], {"id": {"id": {"id": 1}}}),
)
_VALUES = st.one_of(
    st.sampled_from(_NUMBERS),
    st.sampled_from(_TEXTS),
    st.sampled_from(_OTHERS),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=20),
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
        max_leaves=12,
    ),
)

_CONFIG_KEYS = [
    *sorted({name for family in FAMILIES for name in family.keys.__dataclass_fields__}),
    *("model_type", "architectures", "auto_map", "quantization_config", "tie_word_embeddings", "format", "version"),
    *("torch_dtype", "_class_name", "num_labels", "label2id", "is_encoder_decoder", "rope_scaling", "text_config"),
]
_ADAPTER_KEYS = [
    *("use_dora", "use_rslora", "use_qalora", "lora_bias", "target_parameters", "layer_replication", "alpha_pattern"),
    *("rank_pattern", "trainable_token_indices", "modules_to_save", "init_lora_weights", "fan_in_fan_out", "r", "bias"),
]


@st.composite
def broken_header(draw: DrawFn) -> Case:
    """A weights file whose header, its length or the data behind it is not what it was."""
    folder = Case(draw(_families()))
    header, data = wholes.split(folder[WEIGHTS])
    known = [*STORED_TYPES, "F32", "dtype", "shape", "data_offsets", "__metadata__"]
    text = draw(st.just(json.dumps(header).encode()) | _broken(header, known))
    data = draw(st.just(data) | st.integers(0, len(data)).map(lambda end: data[:end]) | st.just(data + b"\0" * 7))
    length = draw(st.just(len(text)) | st.sampled_from((0, 1, 2, len(text) - 1, len(text) + 1, 2**31, 2**64 - 1)))
    return Case(folder | {WEIGHTS: length.to_bytes(8, "little") + text + data})


@st.composite
def broken_tensors(draw: DrawFn) -> Case:
    """A sound file whose tensors have other names, other types or lack: what is left does not make the model."""
    folder = Case(draw(_families()))
    header, data = wholes.split(folder[WEIGHTS])
    for name in draw(st.lists(st.sampled_from([*header]), min_size=1, max_size=3, unique=True)):
        entry = header.pop(name)
        n_bytes = entry["data_offsets"][1] - entry["data_offsets"][0]
        kind = STORED_TYPES[draw(st.sampled_from([*STORED_TYPES]))]
        shape = [n_bytes * 8 // kind.bits] if n_bytes * 8 % kind.bits == 0 and draw(st.booleans()) else entry["shape"]
        stored = kind.name if shape != entry["shape"] else entry["dtype"]
        called = draw(st.just(name) | st.sampled_from([*header, *_TEXTS]) | st.text(max_size=30))
        header[called] = {**entry, "dtype": stored, "shape": draw(st.permutations(shape))}
    return Case(folder | {WEIGHTS: wholes.joined(json.dumps(header).encode(), data)})


@st.composite
def broken_config(draw: DrawFn) -> Case:
    """A model of any family whose config.json says something else in a few places."""
    folder = Case(draw(st.sampled_from([*wholes.of_families().values()])))
    name = wholes.settings_of(folder)
    return Case(folder | {name: draw(_broken(json.loads(folder[name]), _CONFIG_KEYS))})


@st.composite
def mixed_folder(draw: DrawFn) -> Case:
    """The weights of one family with the config of another, or with none; a config of ours changed."""
    weights, other = draw(_families()), draw(_families())
    chosen = draw(st.sampled_from(("none", "other", "both", "native")))
    if chosen == "none":
        return Case({WEIGHTS: draw(st.sampled_from([*wholes.bare().values(), weights]))[WEIGHTS]})
    if chosen == "native":
        native = dict(wholes.native())
        return Case(native | {CONFIG: draw(_broken(json.loads(native[CONFIG]), ["type", "layers", "position"]))})
    config = json.loads(other[CONFIG])
    if chosen == "both":
        config |= {key: value for key, value in json.loads(weights[CONFIG]).items() if draw(st.booleans())}
    return Case({CONFIG: draw(_broken(config, _CONFIG_KEYS)), WEIGHTS: weights[WEIGHTS]})


@st.composite
def broken_index(draw: DrawFn) -> Case:
    """Shards whose index says something else, or of which one is gone, or broken."""
    folder = Case(wholes.sharded())
    shards = [name for name in folder if name.endswith(".safetensors")]
    index = json.loads(folder[INDEX])
    folder[INDEX] = draw(st.just(folder[INDEX]) | _broken(index, [*shards, CONFIG, INDEX, "../x.safetensors"]))
    shard = draw(st.sampled_from(shards))
    fate = draw(st.sampled_from(("whole", "gone", "broken", "twice", "no index")))
    if fate == "gone":
        del folder[shard]
    elif fate == "broken":
        folder[shard] = draw(_broken_bytes(folder[shard]))
    elif fate == "twice":
        folder[shard] = folder[shards[0]]
    elif fate == "no index":
        del folder[INDEX]
    return folder


@st.composite
def broken_tokenizer(draw: DrawFn) -> Case:
    """A model with one file of its tokenizer broken."""
    folder = Case(draw(st.sampled_from([*wholes.with_tokenizers().values()])))
    names = [name for name in folder if name not in (CONFIG, WEIGHTS)]
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)):
        if name.endswith(".json"):
            document = json.loads(folder[name])
            folder[name] = draw(_broken(document, [*document, "content", "id", "type"]) | _broken_bytes(folder[name]))
        elif name.endswith(".txt"):
            folder[name] = draw(_broken_lines(folder[name]) | _broken_bytes(folder[name]))
        else:
            folder[name] = draw(_broken_bytes(folder[name]))
    return folder


@st.composite
def broken_adapter(draw: DrawFn) -> Case:
    """A LoRA adapter whose config, factors or base is not what it was."""
    folder = Case(wholes.adapter())
    chosen = draw(st.sampled_from(("config", "config", "factors", "header", "base")))
    if chosen == "config":
        config = json.loads(folder["adapter_config.json"])
        folder["adapter_config.json"] = draw(_broken(config, [*config, *_ADAPTER_KEYS]))
    elif chosen == "base":
        name = draw(st.sampled_from(("base/config.json", f"base/{WEIGHTS}")))
        folder[name] = draw(_broken_bytes(folder[name]))
    else:
        header, data = wholes.split(folder["adapter_model.safetensors"])
        if chosen == "factors":
            renamed = draw(st.lists(st.text(max_size=9) | st.sampled_from(_FACTOR_NAMES), min_size=2, max_size=2))
            text = json.dumps(dict(zip(renamed, header.values(), strict=True))).encode()
        else:
            text = draw(_broken(header, ["dtype", "shape", "data_offsets", *_FACTOR_NAMES]))
        folder["adapter_model.safetensors"] = wholes.joined(text, data)
    return folder


@st.composite
def broken_preprocessing(draw: DrawFn) -> Case:
    """A model of pictures or sounds whose settings, or whose picture or sound, are not what they were."""
    folder = Case(draw(st.sampled_from(wholes.with_files())))
    document = json.loads(folder[PREPROCESSOR])
    folder[PREPROCESSOR] = draw(_broken(document, [*document, "image_processor_type", "shortest_edge", "n_samples"]))
    file = next(name for name in (PICTURE, SOUND) if name in folder)
    if draw(st.booleans()):
        folder[file] = draw(_broken_bytes(folder[file]))
    return folder


@st.composite
def broken_bytes(draw: DrawFn) -> Case:
    """Any folder with any of its files broken as bytes, another file in its place, or gone."""
    folder = Case(draw(st.sampled_from([*wholes.every()])))
    name = draw(st.sampled_from([*folder]))
    other = draw(st.sampled_from(_OTHER_FORMATS))
    folder[name] = draw(_broken_bytes(folder[name]) | st.just(other) | st.binary(max_size=200))
    if draw(st.integers(0, 9)) == 0:
        del folder[name]
    return folder


KINDS: Mapping[str, Callable[[], SearchStrategy[Case]]] = {
    "header": broken_header,
    "tensors": broken_tensors,
    "config": broken_config,
    "mixed": mixed_folder,
    "index": broken_index,
    "tokenizer": broken_tokenizer,
    "adapter": broken_adapter,
    "preprocessing": broken_preprocessing,
    "bytes": broken_bytes,
}

_FACTOR_NAMES = [
    f"base_model.model.model.layers.{layer}.self_attn.{module}.{factor}.weight"
    for layer in (0, 1, 9)
    for module in ("q_proj", "o_proj", "x_proj")
    for factor in ("lora_A", "lora_B", "lora_embedding_A", "lora_magnitude_vector", "base_layer")
]
_OTHER_FORMATS = (
    b"", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", b"<!DOCTYPE html><html></html>",
    b"PK\x03\x04" + b"\0" * 60, b"\x80\x04\x95" + b"\0" * 60, b"GGUF\x03\0\0\0", b"\x89HDF\r\n\x1a\n", b"\0" * 600,
    b"\xff\xfe{\0}\0", b"\xef\xbb\xbf{}", b"[" * 100_000, b'{"a":' * 100_000, b"1" * 5000, b'{"a": 1e999}', b"nul",
)  # fmt: skip


def _families() -> SearchStrategy[Folder]:
    """Those that state themselves in config.json."""
    return st.sampled_from([folder for folder in wholes.of_families().values() if CONFIG in folder])


@st.composite
def _broken(draw: DrawFn, document: Any, keys: Sequence[str]) -> bytes:
    """The document as JSON, wrong in one to three places."""
    for _ in range(draw(st.integers(1, 3))):
        document = _changed(document, draw(st.sampled_from([*_places(document, ())])), draw, keys)
    text = json.dumps(document, ensure_ascii=draw(st.booleans()))
    return text.replace(f'"{_DEEP}"', "[" * 20_000 + "]" * 20_000).encode("utf-8", "surrogatepass")


def _places(document: Any, place: Place) -> Iterator[Place]:
    """Where every value of a document is, the document itself first."""
    yield place
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inside:
        yield from _places(value, (*place, key))


def _changed(document: Any, place: Place, draw: DrawFn, keys: Sequence[str]) -> Any:
    """The document with another value at the place, none, or one more."""
    if place:
        key, *rest = place
        copy: dict[Any, Any] = dict(enumerate(document)) if isinstance(document, list) else dict(document)
        if not rest and draw(st.integers(0, 3)) == 0:
            del copy[key]
        else:
            copy[key] = _changed(copy[key], tuple(rest), draw, keys)
        return [*copy.values()] if isinstance(document, list) else copy
    if isinstance(document, dict) and draw(st.integers(0, 3)):
        return {**document, draw(st.sampled_from(keys) | st.text(max_size=9)): draw(_VALUES)}
    return draw(_VALUES | st.sampled_from(_near(document)))


def _near(value: Any) -> list[Any]:
    """Values close to one: what an off-by-one, a wrong type or a wrong unit makes of it."""
    if isinstance(value, int | float):
        return [
            value + 1,
            value - 1,
            -value,
            value * 2,
            value * 1000,
            f"{value}",
            [value],
            value + 0.5 if value < 9 else 1.5,
        ]
    if isinstance(value, str):
        return [
            value.upper(),
            f"{value} ",
            value[::-1],
            value * 2,
            [value],
            {value: value},
            value[1:],
            f"{value}.",
        ]
    if isinstance(value, list):
        return [value[::-1], value * 2, value[1:], [value], dict(enumerate(value)), [*value, None]]
    if isinstance(value, dict):
        return [[*value], [*value.values()], dict(reversed(value.items())), {key: None for key in value}]
    return [0, ""]


@st.composite
def _broken_bytes(draw: DrawFn, content: bytes) -> bytes:
    """The bytes cut, changed, doubled or with more in between."""
    begin = draw(st.integers(0, max(len(content) - 1, 0)))
    end = min(begin + draw(st.sampled_from((1, 2, 4, 8, 64, 1 << 20))), len(content))
    inserted = draw(
        st.binary(max_size=8) | st.sampled_from((b"\xff" * 8, b"\0" * 8, b"\x7f" * 4, content[begin:end] * 2))
    )
    return content[:begin] + inserted + content[draw(st.sampled_from((begin, end, len(content)))) :]


@st.composite
def _broken_lines(draw: DrawFn, content: bytes) -> bytes:
    """A text with lines lost, doubled, exchanged or replaced."""
    lines = content.split(b"\n")
    at = draw(st.integers(0, len(lines) - 1))
    new = draw(st.text(max_size=12) | st.sampled_from(_TEXTS))
    lines[at : at + draw(st.integers(0, 2))] = draw(
        st.sampled_from(([], [lines[at]] * 2, [new.encode("utf-8", "surrogatepass")], lines[at : at + 2][::-1]))
    )
    return b"\n".join(lines)
