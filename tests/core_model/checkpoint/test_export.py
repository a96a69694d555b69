"""Saving as a Hugging Face folder: the transformers library opens it and computes the same."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertForNextSentencePrediction,
    BertModel,
    GPT2Model,
    LlamaModel,
)

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.export import express, expressing_families, save_as_family
from core_model.checkpoint.families import FAMILIES, bert, gpt2, llama
from core_model.checkpoint.families.family import weights_of
from core_model.checkpoint.families.rotary import RopeKeys
from core_model.config import ModelConfig, SinusoidalPositions
from core_model.errors import CheckpointError, ConfigError
from core_model.nn.transformer import Transformer
from core_model.trace import Inputs, run_trace
from tests.core_model.checkpoint.configs import EVERY
from tests.core_model.checkpoint.references import IDS, assert_close, logits_of, reference, saved, seeded

GPT2 = gpt2.Gpt2Keys(vocab_size=23, n_positions=17, n_embd=30, n_layer=3, n_head=5, n_inner=37)
BERT = bert.BertKeys(
    vocab_size=23,
    hidden_size=30,
    num_hidden_layers=3,
    num_attention_heads=5,
    intermediate_size=37,
    max_position_embeddings=17,
)
LLAMA = llama.LlamaKeys(
    vocab_size=23,
    hidden_size=30,
    intermediate_size=37,
    num_hidden_layers=3,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=8,
    rope_parameters=RopeKeys(rope_type="yarn", factor=4.0, original_max_position_embeddings=8),
)
KEYS = {"gpt2": GPT2, "bert": BERT, "llama": LLAMA}
BY_KEY = {family.key: family for family in FAMILIES}
NAMES = {"0": "no", "1": "maybe", "2": "yes"}


def config_of(key: str, architecture: str, **changes: object) -> ModelConfig:
    """A config of a family as one of its classes."""
    weights = weights_of(BY_KEY[key].names, {}, architecture=architecture)
    return BY_KEY[key].read(replace(KEYS[key], **changes), weights)  # pyright: ignore[reportArgumentType]


def model_of(config: ModelConfig) -> Transformer:
    """A model whose attention is not flat."""
    torch.manual_seed(0)
    model = Transformer(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3 if parameter.dim() > 1 else 0.1).add_(parameter.dim() == 1)
    return model


@pytest.mark.parametrize(
    ("key", "architecture", "changes", "loader"),
    [
        ("gpt2", "GPT2LMHeadModel", {}, AutoModelForCausalLM),
        ("gpt2", "GPT2LMHeadModel", {"tie_word_embeddings": False}, AutoModelForCausalLM),
        ("gpt2", "GPT2LMHeadModel", {"scale_attn_by_inverse_layer_idx": True}, AutoModelForCausalLM),
        ("gpt2", "GPT2LMHeadModel", {"scale_attn_weights": False}, AutoModelForCausalLM),
        ("gpt2", "GPT2Model", {"activation_function": "relu"}, GPT2Model),
        ("gpt2", "GPT2ForSequenceClassification", {"id2label": NAMES}, AutoModelForSequenceClassification),
        ("gpt2", "GPT2ForTokenClassification", {"id2label": NAMES}, AutoModelForTokenClassification),
        ("gpt2", "GPT2ForQuestionAnswering", {}, AutoModelForQuestionAnswering),
        ("bert", "BertForMaskedLM", {}, AutoModelForMaskedLM),
        ("bert", "BertForMaskedLM", {"tie_word_embeddings": False}, AutoModelForMaskedLM),
        ("bert", "BertModel", {"hidden_act": "gelu_new"}, BertModel),
        ("bert", "BertForSequenceClassification", {"id2label": NAMES}, AutoModelForSequenceClassification),
        ("bert", "BertForMultipleChoice", {}, AutoModelForSequenceClassification),
        ("bert", "BertForNextSentencePrediction", {}, BertForNextSentencePrediction),
        ("bert", "BertForTokenClassification", {"id2label": NAMES}, AutoModelForTokenClassification),
        ("bert", "BertForQuestionAnswering", {}, AutoModelForQuestionAnswering),
        ("llama", "LlamaForCausalLM", {}, AutoModelForCausalLM),
        ("llama", "LlamaForCausalLM", {"tie_word_embeddings": True, "mlp_bias": True}, AutoModelForCausalLM),
        ("llama", "LlamaModel", {"attention_bias": True}, LlamaModel),
        ("llama", "LlamaForSequenceClassification", {"id2label": NAMES}, AutoModelForSequenceClassification),
    ],
)
def test_the_reference_opens_what_we_save_and_computes_the_same(
    key: str, architecture: str, changes: dict[str, object], loader: type, tmp_path: Path
) -> None:
    config = config_of(key, architecture, **changes)
    model = model_of(config)
    save_as_family(tmp_path / "out", model, key)
    theirs, report = loader.from_pretrained(tmp_path / "out", output_loading_info=True)  # pyright: ignore
    unused_pooler = {name for name in report["missing_keys"] if name.startswith("pooler.")}
    assert report["missing_keys"] - unused_pooler == set()
    assert not report["unexpected_keys"] and not report["mismatched_keys"]
    want = run_trace(model, Inputs(ids=IDS))
    ours = want.hidden if want.logits is None else want.logits
    np.testing.assert_allclose(logits_of(reference(theirs)), ours, atol=2e-4 * max(1.0, float(ours.std())), rtol=0)
    with open_checkpoint(tmp_path / "out") as checkpoint:
        assert checkpoint.config == config
        assert checkpoint.info.warnings[-1].startswith("there is no tokenizer")
        assert checkpoint.info.missing == checkpoint.info.unexpected == ()


YARN = {"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 8}
HALF_TURNED = {
    "rope_type": "longrope",
    "rope_theta": 500.0,
    "partial_rotary_factor": 0.5,
    "short_factor": [1.0, 1.5],
    "long_factor": [2.0, 3.0],
}
WIDTHS = {
    "vocab_size": 23,
    "hidden_size": 32,
    "intermediate_size": 37,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
}


@pytest.mark.parametrize(
    ("model_type", "sizes", "loader"),
    [
        ("llama", {**WIDTHS, "rope_parameters": YARN}, AutoModelForCausalLM),
        ("phi3", {**WIDTHS, "pad_token_id": 0, "rope_parameters": HALF_TURNED}, AutoModelForCausalLM),
        ("gpt_neox", {**WIDTHS, "rope_parameters": {**YARN, "partial_rotary_factor": 0.5}}, AutoModelForCausalLM),
        ("bert", WIDTHS, AutoModelForMaskedLM),
        ("distilbert", {"vocab_size": 23, "dim": 32, "n_layers": 2, "n_heads": 4}, AutoModelForMaskedLM),
    ],
)
def test_every_family_that_a_model_is_said_to_fit_is_opened_by_the_reference(
    model_type: str, sizes: dict[str, object], loader: Any, tmp_path: Path
) -> None:
    config = AutoConfig.for_model(model_type, **sizes)
    model = seeded(loader.from_config(config, attn_implementation="eager"))
    want = logits_of(reference(model))
    with open_checkpoint(saved(model, tmp_path / "theirs")) as checkpoint:
        ours = checkpoint.load_model()
    families = [family.key for family in expressing_families(ours.config)]
    assert model_type in families
    for key in families:
        save_as_family(tmp_path / key, ours, key)
        again, report = loader.from_pretrained(tmp_path / key, output_loading_info=True)
        assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")), key
        assert_close(logits_of(reference(again)), want)


def test_the_config_names_its_family_and_dtype(tmp_path: Path) -> None:
    save_as_family(tmp_path / "out", model_of(config_of("gpt2", "GPT2LMHeadModel")).to(torch.bfloat16), "gpt2")
    document = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (document["model_type"], document["architectures"]) == ("gpt2", ["GPT2LMHeadModel"])
    assert document["torch_dtype"] == "bfloat16"
    assert AutoConfig.from_pretrained(tmp_path / "out").n_head == 5
    with open_checkpoint(tmp_path / "out") as checkpoint:
        assert checkpoint.info.dtype == "bfloat16"


def test_files_given_go_along(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n")
    save_as_family(tmp_path / "out", model_of(config_of("bert", "BertModel")), "bert", inputs=[source / "vocab.txt"])
    assert (tmp_path / "out" / "vocab.txt").read_bytes() == (source / "vocab.txt").read_bytes()


def test_a_folder_in_use_is_not_written_into(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CheckpointError, match="not empty"):
        save_as_family(tmp_path, model_of(config_of("bert", "BertModel")), "bert")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_what_a_family_cannot_say_is_refused_in_words() -> None:
    config = config_of("gpt2", "GPT2LMHeadModel")
    assert config.decoder is not None
    sinusoidal = replace(config, decoder=replace(config.decoder, position=SinusoidalPositions()))
    with pytest.raises(ConfigError, match="the decoder has sinusoidal positions, where GPT-2 has learned positions"):
        express(sinusoidal, gpt2.FAMILY)
    layer = replace(config.decoder.layers[1], parallel=True)
    parallel = replace(config, decoder=replace(config.decoder, layers=(config.decoder.layers[0], layer)))
    with pytest.raises(ConfigError, match=r"gpt2|GPT-2"):
        express(parallel, gpt2.FAMILY)


def test_an_unknown_family_is_refused_with_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="gpt2, bert"):
        save_as_family(tmp_path / "out", model_of(config_of("bert", "BertModel")), "nothing")


@pytest.mark.parametrize(
    ("key", "architecture"), [("gpt2", "GPT2LMHeadModel"), ("bert", "BertModel"), ("llama", "LlamaModel")]
)
def test_the_families_that_can_say_a_config_are_told(key: str, architecture: str) -> None:
    able = {family.key for family in expressing_families(config_of(key, architecture))}
    assert able & set(KEYS) == {key}


def test_a_config_no_family_can_say_is_told_as_such() -> None:
    assert all(expressing_families(make()) == () for make in EVERY.values())
