"""BERT checkpoints against the transformers library: every head's attention and the logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForMultipleChoice,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertForTokenClassification,
    BertModel,
    PreTrainedModel,
)

from core_model.checkpoint import open_checkpoint
from tests.core_model.checkpoint.references import IDS, assert_agrees, edit_tensors, reference, saved, seeded

TYPE_IDS = (0,) * 5 + (1,) * 6


def bert_config(**changes: Any) -> BertConfig:
    """Unusual sizes: 3 layers, 5 heads of 6, no power of two."""
    sizes = {"vocab_size": 23, "hidden_size": 30, "num_hidden_layers": 3, "num_attention_heads": 5}
    return BertConfig(**{**sizes, "intermediate_size": 37, "max_position_embeddings": 17, **changes})


@pytest.mark.parametrize(
    "model_class",
    [
        BertModel,
        BertForMaskedLM,
        BertForPreTraining,
        BertForNextSentencePrediction,
        BertForSequenceClassification,
        BertForTokenClassification,
        BertForQuestionAnswering,
    ],
)
def test_every_head_and_the_output_agree_with_the_reference(model_class: type[PreTrainedModel], tmp_path: Path) -> None:
    two_only = model_class in (BertForNextSentencePrediction, BertForQuestionAnswering)
    labels = {} if two_only else {"num_labels": 3}
    model = seeded(model_class(bert_config(**labels)))
    output = reference(model, token_type_ids=TYPE_IDS)
    assert_agrees(saved(model, tmp_path), output, "encoder", type_ids=TYPE_IDS)


def test_multiple_choice_scores_one_choice(tmp_path: Path) -> None:
    model = seeded(BertForMultipleChoice(bert_config()))
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model(input_ids=torch.tensor([[IDS]]), output_attentions=True)
    assert_agrees(saved(model, tmp_path), output, "encoder")


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_act": "gelu_new"},
        {"hidden_act": "relu"},
        {"layer_norm_eps": 0.1},
        {"type_vocab_size": 3},
        {"tie_word_embeddings": False},
    ],
    ids=str,
)
def test_every_choice_of_the_config_agrees_with_the_reference(changes: dict[str, Any], tmp_path: Path) -> None:
    model = seeded(BertForMaskedLM(bert_config(**changes)))
    output = reference(model, token_type_ids=TYPE_IDS)
    assert_agrees(saved(model, tmp_path), output, "encoder", type_ids=TYPE_IDS)


def test_old_spellings_unused_heads_and_buffers_pass_silently(tmp_path: Path) -> None:
    """As bert-base-uncased is stored: LayerNorm.gamma and .beta, a pooler, a next-sentence head, position_ids."""
    model = seeded(BertForMaskedLM(bert_config()))
    folder = saved(model, tmp_path)
    stored = load_file(folder / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): tensor
        for name, tensor in stored.items()
    }
    extra = {
        "bert.pooler.dense.weight": torch.ones(30, 30),
        "bert.pooler.dense.bias": torch.ones(30),
        "cls.seq_relationship.weight": torch.ones(2, 30),
        "cls.seq_relationship.bias": torch.ones(2),
        "bert.embeddings.position_ids": torch.arange(17)[None],
    }
    assert any(name.endswith("gamma") for name in old)
    save_file({**old, **extra}, folder / "model.safetensors")
    assert_agrees(folder, reference(model, token_type_ids=TYPE_IDS), "encoder", type_ids=TYPE_IDS)
    with open_checkpoint(folder) as checkpoint:
        noted = [fact.value for fact in checkpoint.info.facts if fact.name == "stored for other heads"]
        assert "bert.pooler.dense.weight" in noted[0]
        assert not any("pooler" in warning for warning in checkpoint.info.warnings)


def test_of_two_stored_biases_of_the_head_the_one_it_adds_is_used_and_the_other_told(tmp_path: Path) -> None:
    """A tied head means them to be one; where they differ, transformers leaves each as stored and adds decoder.bias."""
    folder = saved(seeded(BertForMaskedLM(bert_config())), tmp_path)
    name = "cls.predictions.decoder.bias"
    edit_tensors(folder, {name: torch.randn(23, generator=torch.Generator().manual_seed(3))})
    output = reference(BertForMaskedLM.from_pretrained(folder).eval(), token_type_ids=TYPE_IDS)
    assert_agrees(folder, output, "encoder", type_ids=TYPE_IDS)
    with open_checkpoint(folder) as checkpoint:
        assert f"cls.predictions.bias is stored with other values than {name}, which is used in its place" in (
            checkpoint.info.warnings
        )


def test_labels_of_a_classifier_are_its_own(tmp_path: Path) -> None:
    names = {0: "negative", 1: "neutral", 2: "positive"}
    model = seeded(BertForSequenceClassification(bert_config(id2label=names)))
    with open_checkpoint(saved(model, tmp_path)) as checkpoint:
        assert checkpoint.config is not None and checkpoint.config.head is not None
        assert checkpoint.config.head.labels == ("negative", "neutral", "positive")


@pytest.mark.parametrize("key", ["is_decoder", "position_embedding_type"])
def test_a_bert_we_do_not_compute_is_refused_by_the_key(key: str, tmp_path: Path) -> None:
    value = {"is_decoder": True, "position_embedding_type": "relative_key"}[key]
    model = BertModel(bert_config(**{key: value}))
    with open_checkpoint(saved(model, tmp_path)) as checkpoint:
        assert key in (checkpoint.info.refusal or "")
