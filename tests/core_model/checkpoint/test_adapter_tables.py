"""Adapters that change a table of tokens or the head that reads it: tied ones, and those of a larger vocabulary.

peft wraps modules, not weights: of a table and a head that are one weight, each then has what is added to it alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.convert import convert
from core_model.trace import Inputs, run_trace
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.adapters import (
    ALPHA,
    RANK,
    Tensors,
    adapter,
    factors,
    gpt2_adapter,
    product,
)
from tests.core_model.checkpoint.references import IDS, logits_of, reference, saved, seeded

TABLE, HEAD = "transformer.wte.weight", "lm_head.weight"
LLAMA: dict[str, Any] = {"hidden_size": 48, "num_hidden_layers": 2, "intermediate_size": 96, "num_attention_heads": 6}


def table_factors() -> tuple[Tensors, np.ndarray]:
    """The factors of the tiny GPT-2's table, and what they add to it."""
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=s).astype(np.float32) for s in ((RANK, tiny.VOCAB), (tiny.D_MODEL, RANK)))
    names = (f"base_model.model.transformer.wte.lora_embedding_{factor}" for factor in "AB")
    return dict(zip(names, (a, b), strict=True)), ALPHA / RANK * (b @ a).T


@pytest.mark.parametrize("is_stored", [True, False])
def test_a_tied_head_that_is_changed_leaves_the_table_as_it_was(is_stored: bool, tmp_path: Path) -> None:
    base, table = tiny.write(tmp_path / "base"), tiny.tensors()[TABLE]
    tensors = factors("lm_head", tiny.VOCAB, tiny.D_MODEL)
    changed = table + ALPHA / RANK * product(tensors, "lm_head")
    stored = {"base_model.model.lm_head.base_layer.weight": table} if is_stored else {}
    with open_checkpoint(adapter(tmp_path / "adapter", {**tensors, **stored}), assume={"base": base}) as checkpoint:
        assert checkpoint.info.refusal is None and not checkpoint.info.tied
        np.testing.assert_array_equal(checkpoint.read_tensor(TABLE), table)
        np.testing.assert_allclose(checkpoint.read_tensor(HEAD), changed, atol=1e-5)


def test_a_table_that_is_changed_leaves_the_tied_head_as_it_was(tmp_path: Path) -> None:
    base, table = tiny.write(tmp_path / "base"), tiny.tensors()[TABLE]
    tensors, added = table_factors()
    with open_checkpoint(adapter(tmp_path / "adapter", tensors), assume={"base": base}) as checkpoint:
        assert checkpoint.info.refusal is None and not checkpoint.info.tied
        np.testing.assert_allclose(checkpoint.read_tensor(TABLE), table + added, atol=1e-5)
        np.testing.assert_array_equal(checkpoint.read_tensor(HEAD), table)


@pytest.mark.parametrize(("saved_modules", "is_tied"), [(["wte"], False), (None, True), ("wte", True)])
def test_a_table_stored_whole_parts_from_the_head_only_as_a_module_of_its_own(
    saved_modules: object, is_tied: bool, tmp_path: Path
) -> None:
    """modules_to_save makes it one; peft stores the weight of both, too, where the vocabulary grew."""
    base = tiny.write(tmp_path / "base")
    _, tensors = gpt2_adapter(tmp_path / "first")
    own = {f"base_model.model.{TABLE}": np.ones((tiny.VOCAB, tiny.D_MODEL), np.float32)}
    folder = adapter(tmp_path / "adapter", {**tensors, **own}, modules_to_save=saved_modules, fan_in_fan_out=True)
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        np.testing.assert_array_equal(checkpoint.read_tensor(TABLE), 1)
        assert bool(checkpoint.info.tied) is is_tied
        if not is_tied:
            np.testing.assert_array_equal(checkpoint.read_tensor(HEAD), tiny.tensors()[TABLE])


@pytest.mark.parametrize("tied", [True, False])
def test_a_vocabulary_that_grew_gives_the_logits_of_the_library(tied: bool, tmp_path: Path) -> None:
    config = LlamaConfig(**LLAMA, vocab_size=90, tie_word_embeddings=tied)
    model = seeded(LlamaForCausalLM(config))
    base = saved(model, tmp_path / "base")
    name, added = "model.layers.1.self_attn.q_proj", np.random.default_rng(1).normal(size=(3, 48)).astype(np.float32)
    tensors = factors(name, 48, 48)
    with torch.no_grad():
        model.get_parameter(f"{name}.weight").add_(torch.from_numpy(ALPHA / RANK * product(tensors, name)))
        model.resize_token_embeddings(93)
        for table in ("model.embed_tokens", "lm_head"):
            module = model.get_submodule(table)
            module.get_parameter("weight")[90:] = torch.from_numpy(added)
            tensors[f"base_model.model.{table}.weight"] = module.get_parameter("weight").numpy().copy()
    with open_checkpoint(adapter(tmp_path / "adapter", tensors), assume={"base": base}) as checkpoint:
        trace = run_trace(checkpoint.load_model(), Inputs(ids=(*IDS, 91, 92)))
    assert trace.logits is not None
    expected = logits_of(reference(model, (*IDS, 91, 92)))
    np.testing.assert_allclose(trace.logits, expected, atol=2e-3, rtol=1e-4)


def test_a_base_whose_own_table_is_of_another_size_stays_refused(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base", {**tiny.CONFIG, "vocab_size": tiny.VOCAB + 1})
    folder, _ = gpt2_adapter(tmp_path / "adapter")
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        assert "of another shape" in (checkpoint.info.refusal or "")


def test_what_is_stored_beside_a_module_that_is_stored_itself_is_not_spoken_of(tmp_path: Path) -> None:
    """As some versions of peft save modules_to_save: the wrapped parts as well."""
    base = tiny.write(tmp_path / "base")
    _, tensors = gpt2_adapter(tmp_path / "first")
    whole = {
        part: np.full(tiny.D_MODEL, i, np.float32)
        for i, part in enumerate(("", ".modules_to_save", ".original_module"))
    }
    named = {f"base_model.model.transformer.ln_f{part}.weight": value for part, value in whole.items()}
    with open_checkpoint(adapter(tmp_path / "adapter", {**tensors, **named}), assume={"base": base}) as checkpoint:
        assert not checkpoint.info.unexpected
        np.testing.assert_array_equal(checkpoint.read_tensor("transformer.ln_f.weight"), 0)


@pytest.mark.parametrize(("own", "id", "whose"), [(True, 4, "adapter's"), (False, 5, "the base's")])
def test_the_adapters_own_tokenizer_is_used_where_there_is_one(own: bool, id: int, whose: str, tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    (base / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    folder, _ = gpt2_adapter(tmp_path / "adapter")
    if own:
        (folder / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n[MASK]\n")
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        tokens = checkpoint.encode("a").tokens_of("decoder")
        assert tokens is not None and id in tokens.ids
        assert f"; {whose} tokenizer is used" in checkpoint.info.facts[0].value
    convert(folder, tmp_path / "out", assume={"base": base})
    copied = (folder if own else base) / "vocab.txt"
    assert (tmp_path / "out" / "vocab.txt").read_bytes() == copied.read_bytes()
