"""Broken and foreign files: one sentence that names the file, never another exception."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from core_model.errors import TokenizerError
from core_model.tokenize import Tokenizer, files, load_tokenizer

Load = Callable[..., Tokenizer]
Write = Callable[..., Path]


def test_a_folder_without_a_tokenizer_has_none(tmp_path: Path):
    assert load_tokenizer(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 17\n", "Git LFS pointer"),
        (b"\n<!DOCTYPE html><html>404</html>", "web page"),
        (b"\xff\xfe{\x00", "not UTF-8"),
        (b"not json", "not valid JSON"),
        (b'{"model": {"type": "BPE"', "not valid JSON"),
        (b"[1, 2]", "does not have the expected fields"),
        (b'{"a":' + b"[" * 200_000, "nested too deeply"),
    ],
)
@pytest.mark.parametrize("name", ["tokenizer.json", "native_tokenizer.json"])
def test_what_is_wrong_with_a_file_is_said(name: str, content: bytes, said: str, tmp_path: Path, load: Load):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TokenizerError, match=f"tokenizer file {name} .*{said}"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", '{"do_lower_case": "maybe"}'),
        ("tokenizer_config.json", '{"chat_template": ' + "[" * 200_000),
        ("special_tokens_map.json", "[]"),
        ("added_tokens.json", '{"a": -3}'),
    ],
)
def test_a_broken_companion_file_is_named(name: str, content: str, tmp_path: Path, load: Load):
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\nthe\n", encoding="utf-8")
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(TokenizerError, match=r"The tokenizer file \w+\.json"):
        load(tmp_path)


def test_a_directory_or_a_dead_link_in_place_of_the_file_is_said(tmp_path: Path, load: Load):
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(TokenizerError, match="is not a file"):
        load(tmp_path)
    (tmp_path / "tokenizer.json").rmdir()
    (tmp_path / "tokenizer.json").symlink_to(tmp_path / "gone")
    with pytest.raises(TokenizerError, match="cannot be read"):
        load(tmp_path)


def test_a_file_beyond_the_limit_is_not_read(tmp_path: Path, load: Load):
    (tmp_path / "tokenizer.json").touch()
    os.truncate(tmp_path / "tokenizer.json", files.SIZE_LIMIT + 1)  # sparse: takes no room
    with pytest.raises(TokenizerError, match="more than the limit"):
        load(tmp_path)


def test_a_byte_order_mark_is_no_token(tmp_path: Path, load: Load):
    (tmp_path / "vocab.txt").write_bytes(b"\xef\xbb\xbf[UNK]\n[CLS]\n[SEP]\nthe\n")
    tokenizer = load(tmp_path)
    assert tokenizer.encode("the").ids == (1, 3, 2)


def test_importing_the_package_loads_no_tokenizer_library():
    heavy = "{'torch', 'tokenizers', 'sentencepiece', 'numpy'}"
    code = f"import sys, core_model.tokenize; print(sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("tokenizer.json", "[" * 2_200_001, "holds more than 2,200,000 values"),
        ("vocab.txt", "a\n" * 600_001, "has more than 600,000 lines"),
    ],
)
def test_more_than_a_vocabulary_holds_is_refused_before_it_is_read(
    name: str, content: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(TokenizerError, match=f"{name} {told}: use the model's own file"):
        load_tokenizer(tmp_path)
