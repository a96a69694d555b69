"""Configs with something wrong in them: the error names the key, the tensors stay to look at, nothing else breaks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core_model.checkpoint import open_checkpoint
from core_model.errors import ConfigError, CoreError
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.tiny import changed, refusal


@pytest.mark.parametrize(
    "value", ["4", "4x", 4.0, 4.5, [4], {}, -4, 0, 3, 10**9, 10**30, True, None, ...], ids=lambda v: repr(v)
)
def test_a_wrong_number_of_heads_is_a_config_error_that_names_it(value: object, tmp_path: Path) -> None:
    error = refusal(tiny.write(tmp_path, changed(n_head=value)))
    assert isinstance(error, ConfigError)
    assert "n_head" in str(error)
    if value not in (..., None):
        assert str(value) in str(error) or repr(value) in str(error)


@pytest.mark.parametrize("value", ["2", 2.5, [2], -1, 0, 10**9, 10**30], ids=repr)
def test_a_wrong_number_of_layers_is_a_config_error_that_names_it(value: object, tmp_path: Path) -> None:
    error = refusal(tiny.write(tmp_path, changed(n_layer=value)))
    assert isinstance(error, ConfigError)
    assert "n_layer" in str(error)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("layer_norm_epsilon", -1.0),
        ("layer_norm_epsilon", 0),
        ("layer_norm_epsilon", "1e-5"),
        ("layer_norm_epsilon", 10**400),
        ("activation_function", "__import__('os').system('touch x')"),
        ("activation_function", 3),
        ("attn_pdrop", 1.5),
        ("tie_word_embeddings", "yes"),
        ("n_inner", -3),
        ("scale_attn_weights", 1),
    ],
)
def test_a_wrong_value_is_a_config_error_that_names_its_key(key: str, value: object, tmp_path: Path) -> None:
    error = refusal(tiny.write(tmp_path, changed(**{key: value})))
    assert isinstance(error, ConfigError)
    assert key in str(error)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"{", "not valid JSON"),
        (b'{"n_head": 2,}', "not valid JSON"),
        (b'{"layer_norm_epsilon": NaN}', "NaN"),
        (b'{"layer_norm_epsilon": Infinity}', "Infinity"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        (b"[" * 200_000 + b"]" * 200_000, "too deeply"),
        (json.dumps(tiny.CONFIG).encode("utf-16"), "UTF-16"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b'{"n_head": ' + b"1" * 5000 + b"}", "not valid JSON"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_config_leaves_the_tensors_to_look_at(content: bytes, reason: str, tmp_path: Path) -> None:
    (tiny.write(tmp_path) / "config.json").write_bytes(content)
    assert reason in str(refusal(tmp_path))
    assert str(refusal(tmp_path)).startswith("config.json ")


@pytest.mark.parametrize(
    "text", [json.dumps(tiny.CONFIG, indent=2).replace("\n", "\r\n"), "\ufeff" + json.dumps(tiny.CONFIG)]
)
def test_line_ends_and_byte_order_marks_do_not_matter(text: str, tmp_path: Path) -> None:
    (tiny.write(tmp_path) / "config.json").write_bytes(text.encode())
    with open_checkpoint(tmp_path) as checkpoint:
        assert checkpoint.info.refusal is None


_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 70), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)
_GPT2_KEYS = st.sampled_from([*tiny.CONFIG, "n_inner", "id2label", "bos_token_id", "quantization_config", "embd_pdrop"])
_LLAMA_KEYS = st.sampled_from(
    ["rope_scaling", "rope_parameters", "rope_theta", "head_dim", "num_key_value_heads", "num_attention_heads"]
)


@settings(max_examples=500)
@given(changes=st.dictionaries(_GPT2_KEYS, _VALUES, max_size=3))
def test_any_config_gives_a_model_or_a_core_error(
    changes: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "fuzzed"
    tiny.write(folder, {**tiny.CONFIG, **changes})
    with open_checkpoint(folder) as checkpoint:
        assert len(checkpoint.tensors) == len(tiny.tensors())
        try:
            checkpoint.load_model()
        except CoreError as error:
            assert str(error).isprintable()
            assert checkpoint.info.refusal == str(error)
        else:
            assert checkpoint.info.refusal is None


_ROPE = st.dictionaries(
    st.sampled_from(
        ["rope_type", "type", "factor", "original_max_position_embeddings", "low_freq_factor", "short_factor"]
    ),
    st.one_of(_VALUES, st.sampled_from(["linear", "dynamic", "yarn", "llama3", "longrope"])),
    max_size=4,
)


@settings(max_examples=200)
@given(changes=st.dictionaries(_LLAMA_KEYS, _VALUES | _ROPE, max_size=3))
def test_any_llama_config_is_a_reading_or_a_core_error(
    changes: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "fuzzed-llama"
    sizes = {"vocab_size": 11, "hidden_size": 8, "intermediate_size": 9, "num_hidden_layers": 1}
    tiny.write(folder, {"model_type": "llama", "num_attention_heads": 2, **sizes, **changes})
    with open_checkpoint(folder) as checkpoint:
        assert str(checkpoint.info.refusal).isprintable()
        with pytest.raises(CoreError):
            checkpoint.load_model()
