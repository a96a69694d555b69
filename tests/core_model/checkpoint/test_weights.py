"""Single weights read by our names, without building the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, MixtralConfig, MixtralForCausalLM, PreTrainedModel

from core_model.checkpoint import open_checkpoint
from core_model.errors import CheckpointError
from tests.core_model.checkpoint.references import saved, seeded

GPT2 = GPT2Config(n_layer=2, n_head=3, n_embd=12, vocab_size=17, n_positions=8, bos_token_id=0, eos_token_id=0)
MIXTRAL = MixtralConfig(
    num_hidden_layers=1,
    hidden_size=12,
    intermediate_size=8,
    num_attention_heads=3,
    num_key_value_heads=1,
    num_local_experts=2,
    vocab_size=17,
)


@pytest.mark.parametrize(("model_class", "config"), [(GPT2LMHeadModel, GPT2), (MixtralForCausalLM, MIXTRAL)])
def test_every_weight_is_read_as_the_loaded_model_has_it(model_class: type[PreTrainedModel], config, tmp_path: Path):
    folder = saved(seeded(model_class(config)), tmp_path)
    with open_checkpoint(folder) as checkpoint:
        loaded = checkpoint.load_model().state_dict()
        for name in loaded:
            np.testing.assert_array_equal(checkpoint.read_weight(name), loaded[name].numpy(), err_msg=name)


def test_a_checkpoint_without_a_model_says_why_it_has_no_weights_of_one(tmp_path: Path):
    save_file({"strange": torch.zeros(2, 2)}, tmp_path / "model.safetensors")
    with open_checkpoint(tmp_path) as checkpoint, pytest.raises(CheckpointError, match="not those of a known family"):
        checkpoint.read_weight("decoder.layers.0.attention.query.weight")


def test_a_tensor_that_is_not_there_is_named(tmp_path: Path):
    save_file({"strange": torch.zeros(2, 2)}, tmp_path / "model.safetensors")
    with open_checkpoint(tmp_path) as checkpoint, pytest.raises(CheckpointError, match="no tensor named familiar"):
        checkpoint.tensor("familiar")
