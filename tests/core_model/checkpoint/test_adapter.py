"""LoRA adapters over their bases, held against the formula of the paper computed by hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
)

from core_model.checkpoint import open_checkpoint
from core_model.trace import Inputs, run_trace
from tests.core_model.checkpoint import tiny
from tests.core_model.checkpoint.adapters import (
    ALPHA,
    ATTENTION,
    RANK,
    Tensors,
    adapter,
    factors,
    gpt2_adapter,
    product,
    refusal,
)
from tests.core_model.checkpoint.references import IDS, logits_of, reference, saved, seeded


@pytest.mark.parametrize(
    ("config", "scale"),
    [
        ({}, ALPHA / RANK),
        ({"use_rslora": True}, ALPHA / RANK**0.5),
        ({"alpha_pattern": {"c_attn": 5}}, 5 / RANK),
        ({"alpha_pattern": {"attn": 5}}, ALPHA / RANK),
        ({"alpha_pattern": {"h.1.attn.c_attn": 1.5}, "use_rslora": True}, 1.5 / RANK**0.5),
    ],
)
def test_the_scaled_product_is_added_to_the_weight(config: dict[str, Any], scale: float, tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    folder, tensors = gpt2_adapter(tmp_path / "adapter", **config)
    expected = tiny.tensors()[f"{ATTENTION}.weight"] + scale * product(tensors, ATTENTION).T
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        assert checkpoint.info.refusal is None
        np.testing.assert_allclose(checkpoint.read_tensor(f"{ATTENTION}.weight"), expected, atol=1e-5)
        untouched = "transformer.h.0.attn.c_attn.weight"
        np.testing.assert_array_equal(checkpoint.read_tensor(untouched), tiny.tensors()[untouched])


def test_a_part_that_begins_within_a_row_has_its_part_of_the_product(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    folder, _ = gpt2_adapter(tmp_path / "adapter")
    name = f"{ATTENTION}.weight"
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        whole = checkpoint.read_tensor(name).ravel()
        np.testing.assert_array_equal(checkpoint._store.read(name, 5, 60), whole[5:60])


def test_logits_are_those_of_the_library_with_the_merged_weights(tmp_path: Path) -> None:
    """Several modules of a llama with grouped queries; the library gets W + s B A computed here."""
    import torch

    sizes: dict[str, Any] = {"hidden_size": 48, "num_hidden_layers": 2, "intermediate_size": 96, "vocab_size": 90}
    model = seeded(LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=6, num_key_value_heads=2)))
    base = saved(model, tmp_path / "base")
    tensors: Tensors = {}
    for i, module in enumerate(("self_attn.q_proj", "self_attn.k_proj", "mlp.down_proj")):
        name = f"model.layers.1.{module}"
        weight = model.get_parameter(f"{name}.weight")
        tensors |= factors(name, *weight.shape, seed=i)
        with torch.no_grad():
            weight.add_(torch.from_numpy(ALPHA / RANK * product(tensors, name)))
    expected = logits_of(reference(model))
    with open_checkpoint(adapter(tmp_path / "adapter", tensors), assume={"base": base}) as checkpoint:
        trace = run_trace(checkpoint.load_model(), Inputs(ids=IDS))
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, expected, atol=2e-3, rtol=1e-4)


@pytest.mark.parametrize("spelling", ["lora_{factor}", "lora_{factor}.default.weight"])
def test_other_spellings_of_the_factors_are_read(spelling: str, tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    _, tensors = gpt2_adapter(tmp_path / "first")
    named = {
        f"base_model.model.{ATTENTION}.{spelling.format(factor=factor)}": tensor
        for factor, tensor in zip("AB", tensors.values(), strict=True)
    }
    folder = adapter(tmp_path / "adapter", named, fan_in_fan_out=True)
    expected = tiny.tensors()[f"{ATTENTION}.weight"] + ALPHA / RANK * product(tensors, ATTENTION).T
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        np.testing.assert_allclose(checkpoint.read_tensor(f"{ATTENTION}.weight"), expected, atol=1e-5)


def test_a_prefix_that_only_one_side_has_is_no_obstacle(tmp_path: Path) -> None:
    """GPT-2 of the Hub has no "transformer." before its names; peft sees the module, which has."""
    weights = {name.removeprefix("transformer."): tensor for name, tensor in tiny.tensors().items()}
    base = tiny.write(tmp_path / "base", weights=weights)
    folder, _ = gpt2_adapter(tmp_path / "adapter")
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        assert checkpoint.info.refusal is None
        assert not np.array_equal(checkpoint.read_tensor("h.1.attn.c_attn.weight"), weights["h.1.attn.c_attn.weight"])


def test_the_table_of_an_embedding_gets_the_transposed_product(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(RANK, tiny.VOCAB)), rng.normal(size=(tiny.D_MODEL, RANK))
    pair = {"lora_embedding_A": a, "lora_embedding_B": b}
    tensors = {f"base_model.model.transformer.wte.{name}": value.astype(np.float32) for name, value in pair.items()}
    with open_checkpoint(adapter(tmp_path / "adapter", tensors), assume={"base": base}) as checkpoint:
        found = checkpoint.read_tensor("transformer.wte.weight")
    np.testing.assert_allclose(found, tiny.tensors()["transformer.wte.weight"] + ALPHA / RANK * (b @ a).T, atol=1e-5)


@pytest.mark.parametrize("stored", ["transformer.ln_f.weight", "transformer.ln_f.modules_to_save.default.weight"])
def test_what_the_adapter_stores_whole_takes_the_place_of_the_base(stored: str, tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    whole = np.full(tiny.D_MODEL, 7, np.float32)
    _, tensors = gpt2_adapter(tmp_path / "first")
    folder = adapter(tmp_path / "adapter", {**tensors, f"base_model.model.{stored}": whole}, fan_in_fan_out=True)
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        np.testing.assert_array_equal(checkpoint.read_tensor("transformer.ln_f.weight"), whole)
        assert "ln_f" in next(fact.value for fact in checkpoint.info.facts if fact.name == "adapter")
        assert checkpoint.info.warnings == ("there is no tokenizer beside the weights: type token ids instead of text",)


def test_the_card_names_both_and_the_number_of_weights(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    folder, _ = gpt2_adapter(tmp_path / "adapter")
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        info = checkpoint.info
        assert (info.name, info.path) == ("base + adapter", folder)
        assert info.facts[0].value == "adapter: LoRA, merged into 1 weight"
        assert not any("lora" in name for name in checkpoint.tensors)
    with open_checkpoint(base) as checkpoint:
        assert checkpoint.info.header_sha256 != info.header_sha256


def test_a_base_in_shards_is_merged_too(tmp_path: Path) -> None:
    base = tmp_path / "base"
    tiny.write_shards(base)
    folder, tensors = gpt2_adapter(tmp_path / "adapter")
    expected = tiny.tensors()[f"{ATTENTION}.weight"] + ALPHA / RANK * product(tensors, ATTENTION).T
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        np.testing.assert_allclose(checkpoint.read_tensor(f"{ATTENTION}.weight"), expected, atol=1e-5)


@pytest.mark.parametrize("named", ["someone/base", "/elsewhere/base", "C:\\models\\base"])
def test_the_base_is_found_beside_the_adapter(named: str, tmp_path: Path) -> None:
    tiny.write(tmp_path / "base")
    folder, _ = gpt2_adapter(tmp_path / "adapter", base_model_name_or_path=named)
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.refusal is None and checkpoint.info.name == "base + adapter"


def test_the_base_is_found_at_the_path_the_adapter_gives(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "models" / "base")
    folder, _ = gpt2_adapter(tmp_path / "adapters" / "adapter", base_model_name_or_path=str(base))
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.refusal is None and checkpoint.info.name == "base + adapter"


@pytest.mark.parametrize("named", ["//machine/share/base", r"\\machine\share\base", r"/\machine\share\base"])
def test_a_path_on_another_machine_is_never_looked_for(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "isabs", lambda path: True)  # as Windows has it
    monkeypatch.setattr(os.path, "isdir", pytest.fail)
    folder, _ = gpt2_adapter(tmp_path / "adapter", base_model_name_or_path=named)
    assert "adapter (LoRA" in refusal(folder)


def test_the_base_is_found_in_the_hubs_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    tiny.write(tmp_path / "cache" / "models--someone--base" / "snapshots" / "abc")
    folder, _ = gpt2_adapter(tmp_path / "adapter")
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.name == "someone/base + adapter"


@pytest.mark.parametrize("named", ["..", ".", "../..", "someone/..", "", None, 3])
def test_a_name_that_leads_nowhere_finds_no_base(
    named: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    folder, _ = gpt2_adapter(tmp_path / "adapter", base_model_name_or_path=named)
    assert "adapter (LoRA" in refusal(folder)


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({"peft_type": "IA3"}, "IA3"),
        ({"peft_type": "ADALORA"}, "ADALORA"),
        ({"init_lora_weights": "pissa_niter_4"}, "pissa_niter_4"),
        ({"lora_bias": True}, "biases"),
        ({"alpha_pattern": {"(a+)+$": 3}}, "alpha_pattern"),
        ({"lora_alpha": "16"}, "lora_alpha"),
        ({"lora_alpha": None}, "lora_alpha"),
    ],
)
def test_what_is_more_than_plain_lora_is_named(config: dict[str, Any], word: str, tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    folder, _ = gpt2_adapter(tmp_path / "adapter", **config)
    assert word in refusal(folder, base)


def test_a_table_that_the_adapter_stores_whole_is_changed_as_well(tmp_path: Path) -> None:
    """As peft saves an embedding that it was made to change: the table, perhaps with more rows, beside A and B."""
    base = tiny.write(tmp_path / "base")
    rng = np.random.default_rng(0)
    shapes = {
        "base_layer.weight": (tiny.VOCAB + 2, tiny.D_MODEL),
        "lora_embedding_A": (RANK, tiny.VOCAB + 2),
        "lora_embedding_B": (tiny.D_MODEL, RANK),
    }
    table, a, b = (rng.normal(size=shape).astype(np.float32) for shape in shapes.values())
    names = (f"base_model.model.transformer.wte.{name}" for name in shapes)
    folder = adapter(tmp_path / "adapter", dict(zip(names, (table, a, b), strict=True)))
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        found = checkpoint.read_tensor("transformer.wte.weight")
    np.testing.assert_allclose(found, table + ALPHA / RANK * (b @ a).T, atol=1e-5)


def test_a_config_that_speaks_for_other_modules_yields_to_the_shapes(tmp_path: Path) -> None:
    """peft keeps one fan_in_fan_out for all: that of GPT-2's own maps, though its output head is stored otherwise."""
    head = "lm_head"
    weights = {**tiny.tensors(), f"{head}.weight": np.ones((tiny.VOCAB, tiny.D_MODEL), np.float32)}
    base = tiny.write(tmp_path / "base", {**tiny.CONFIG, "tie_word_embeddings": False}, weights)
    tensors = factors(head, tiny.VOCAB, tiny.D_MODEL)
    folder = adapter(tmp_path / "adapter", tensors, fan_in_fan_out=True)
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        found = checkpoint.read_tensor(f"{head}.weight")
    np.testing.assert_allclose(found, 1 + ALPHA / RANK * product(tensors, head), atol=1e-5)


@pytest.mark.parametrize("rank", [1, 4])
def test_a_rank_of_its_own_scales_a_module_by_itself(rank: int, tmp_path: Path) -> None:
    """rank_pattern: the shapes say it as well."""
    base = tiny.write(tmp_path / "base")
    tensors = factors(ATTENTION, 3 * tiny.D_MODEL, tiny.D_MODEL, rank=rank)
    folder = adapter(tmp_path / "adapter", tensors, fan_in_fan_out=True, rank_pattern={"c_attn": rank})
    want = tiny.tensors()[f"{ATTENTION}.weight"] + ALPHA / rank * product(tensors, ATTENTION).T
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        np.testing.assert_allclose(checkpoint.read_tensor(f"{ATTENTION}.weight"), want, atol=1e-5)


def test_another_base_is_refused_with_the_weight_that_does_not_fit(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    wide = adapter(tmp_path / "wide", factors(ATTENTION, 30, 10), fan_in_fan_out=True)
    assert "[30, 3] and [3, 10]" in refusal(wide, base) and "[8, 24]" in refusal(wide, base)
    other = adapter(tmp_path / "other", factors("model.layers.0.self_attn.q_proj", 8, 8))
    assert "q_proj" in refusal(other, base)
    half = dict(list(factors(ATTENTION, 24, 8).items())[:1])
    assert "holds no lora_B of transformer.h.1.attn.c_attn" in refusal(adapter(tmp_path / "half", half), base)


def test_an_adapter_is_no_base(tmp_path: Path) -> None:
    folder, _ = gpt2_adapter(tmp_path / "adapter")
    assert "is an adapter too" in refusal(folder, folder)


def test_files_are_released_on_closing(tmp_path: Path) -> None:
    base = tiny.write(tmp_path / "base")
    folder, _ = gpt2_adapter(tmp_path / "adapter")
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        files = checkpoint._store._files
        factors = vars(files[-1])["_factors"]
    assert all(file._file.closed for file in (*files, factors))


def test_the_library_agrees_on_an_encoder_decoder(tmp_path: Path) -> None:
    """T5's linear maps keep their names under the encoder and the decoder."""
    config = T5Config(d_model=48, d_kv=16, num_layers=2, num_heads=3, d_ff=96, vocab_size=90)
    base = saved(seeded(T5ForConditionalGeneration(config)), tmp_path / "base")
    name = "decoder.block.1.layer.1.EncDecAttention.q"
    folder = adapter(tmp_path / "adapter", factors(name, 48, 48))
    with open_checkpoint(base) as plain, open_checkpoint(folder, assume={"base": base}) as merged:
        assert merged.info.refusal is None
        delta = merged.read_tensor(f"{name}.weight") - plain.read_tensor(f"{name}.weight")
    np.testing.assert_allclose(delta, ALPHA / RANK * product(factors(name, 48, 48), name), atol=1e-5)


@pytest.mark.parametrize("stated", [True, False])
def test_gpt2_as_the_library_saves_it_agrees_with_the_merged_weights(stated: bool, tmp_path: Path) -> None:
    """fan_in_fan_out is what the last module changed needed, so it may be false of a square weight that is turned."""
    import torch

    model = seeded(GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=48, n_head=3, vocab_size=90, n_positions=32)))
    base = saved(model, tmp_path / "base")
    name = "transformer.h.0.attn.c_proj"  # square: the shapes do not tell which way it is stored
    tensors = factors(name, 48, 48)
    with torch.no_grad():
        model.get_parameter(f"{name}.weight").add_(torch.from_numpy(ALPHA / RANK * product(tensors, name).T))
    folder = adapter(tmp_path / "adapter", tensors, fan_in_fan_out=stated)
    with open_checkpoint(folder, assume={"base": base}) as checkpoint:
        trace = run_trace(checkpoint.load_model(), Inputs(ids=IDS))
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, logits_of(reference(model)), atol=2e-3, rtol=1e-4)
