"""Llama checkpoints against the transformers library: grouped heads, biases, head sizes, every kind of rope scaling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, LlamaModel, PreTrainedModel

from core_model.checkpoint import open_checkpoint
from tests.core_model.checkpoint.references import assert_agrees, reference, saved, seeded

FACTORS = [1.0, 1.5, 2.0, 3.0]
ROPE: dict[str, dict[str, Any]] = {
    "plain": {"rope_type": "default", "rope_theta": 500.0},
    "linear": {"rope_type": "linear", "factor": 4.0, "rope_theta": 10000.0},
    "dynamic": {"rope_type": "dynamic", "factor": 3.0, "rope_theta": 10000.0},
    "yarn": {
        "rope_type": "yarn",
        "factor": 4.0,
        "original_max_position_embeddings": 8,
        "rope_theta": 10000.0,
    },
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8,
        "rope_theta": 500000.0,
    },
    "longrope": {
        "rope_type": "longrope",
        "short_factor": FACTORS,
        "long_factor": [2 * f for f in FACTORS],
        "factor": 4.0,
        "original_max_position_embeddings": 8,
        "rope_theta": 10000.0,
    },
}


def llama_config(**changes: Any) -> LlamaConfig:
    """Unusual sizes: 3 layers, 6 query heads over 2 key heads, head size 8 where width / heads is 5."""
    sizes = {"vocab_size": 23, "hidden_size": 30, "intermediate_size": 37, "num_hidden_layers": 3, "head_dim": 8}
    heads = {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 32}
    return LlamaConfig(**{**sizes, **heads, **changes})


@pytest.mark.parametrize("kind", ROPE)
def test_every_rope_scaling_agrees_with_the_reference(kind: str, tmp_path: Path) -> None:
    model = seeded(LlamaForCausalLM(llama_config(rope_parameters=dict(ROPE[kind]))))
    assert_agrees(saved(model, tmp_path), reference(model), "decoder")


@pytest.mark.parametrize("kind", ROPE)
def test_the_older_config_dialect_means_the_same(kind: str, tmp_path: Path) -> None:
    model = seeded(LlamaForCausalLM(llama_config(rope_parameters=dict(ROPE[kind]))))
    folder = saved(model, tmp_path)
    document = json.loads((folder / "config.json").read_text())
    rope = document.pop("rope_parameters")
    older = {"rope_theta": rope.pop("rope_theta"), "rope_scaling": {"type": rope.pop("rope_type"), **rope}}
    (folder / "config.json").write_text(json.dumps({**document, **older}))
    assert_agrees(folder, reference(model), "decoder")


@pytest.mark.parametrize(
    "changes",
    [
        {"attention_bias": True, "mlp_bias": True},
        {"tie_word_embeddings": True},
        {"hidden_act": "gelu"},
        {"num_key_value_heads": 6},
        {"num_key_value_heads": 1},
        {"rms_norm_eps": 0.1},
    ],
    ids=str,
)
def test_every_choice_of_the_config_agrees_with_the_reference(changes: dict[str, Any], tmp_path: Path) -> None:
    model = seeded(LlamaForCausalLM(llama_config(**changes)))
    assert_agrees(saved(model, tmp_path), reference(model), "decoder")


@pytest.mark.parametrize("model_class", [LlamaModel, LlamaForSequenceClassification])
def test_other_heads_agree_with_the_reference(model_class: type[PreTrainedModel], tmp_path: Path) -> None:
    model = seeded(model_class(llama_config(num_labels=3, pad_token_id=0)))
    assert_agrees(saved(model, tmp_path), reference(model), "decoder")


def test_shards_are_read_as_one_model(tmp_path: Path) -> None:
    model = seeded(LlamaForCausalLM(llama_config()))
    model.save_pretrained(tmp_path, max_shard_size="10KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 2
    assert_agrees(tmp_path, reference(model), "decoder")


@pytest.mark.parametrize("key", ["low_freq_factor", "high_freq_factor"])
def test_a_rope_scaling_without_a_needed_key_names_it(key: str, tmp_path: Path) -> None:
    folder = saved(LlamaForCausalLM(llama_config(rope_parameters=dict(ROPE["llama3"]))), tmp_path)
    document = json.loads((folder / "config.json").read_text())
    del document["rope_parameters"][key]
    (folder / "config.json").write_text(json.dumps(document))
    with open_checkpoint(folder) as checkpoint:
        assert key in (checkpoint.info.refusal or "")
