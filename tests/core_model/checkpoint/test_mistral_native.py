"""Mistral's and Meta's own files: held against the transformers library, and against the paper's rotary positions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, MistralForCausalLM, PreTrainedModel

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.export import save_as_family
from core_model.checkpoint.pickles import convert_pickle
from core_model.errors import ConfigError, CoreError
from core_model.trace import Inputs, run_trace
from tests.core_model.checkpoint.references import (
    ATTENTION_LIMIT,
    IDS,
    OUTPUT_LIMIT,
    assert_agrees,
    logits_of,
    reference,
    saved,
    seeded,
)

N_HEADS, N_KEY_HEADS, HEAD_SIZE = 6, 2, 8
SIZES: dict[str, Any] = {
    "vocab_size": 23,
    "hidden_size": 36,
    "intermediate_size": 20,
    "num_hidden_layers": 4,
    "num_attention_heads": N_HEADS,
    "num_key_value_heads": N_KEY_HEADS,
    "head_dim": HEAD_SIZE,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}
PARAMS: dict[str, Any] = {
    "dim": 36,
    "n_layers": 4,
    "head_dim": HEAD_SIZE,
    "hidden_dim": 20,
    "n_heads": N_HEADS,
    "n_kv_heads": N_KEY_HEADS,
    "norm_eps": 1e-5,
    "vocab_size": 23,
}
NAMES = {
    "model.embed_tokens": "tok_embeddings",
    "lm_head": "output",
    "model.": "",
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.up_proj": "feed_forward.w3",
    "mlp.down_proj": "feed_forward.w2",
    "block_sparse_moe": "feed_forward",
}
"""What the library calls them, and what Mistral does."""


def model_of(model_type: str, **changes: Any) -> PreTrainedModel:
    return seeded(AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **{**SIZES, **changes})))


def native(model: PreTrainedModel, library: Path) -> dict[str, torch.Tensor]:
    """The weights of a model of the library as Mistral names them and pairs their rotary dimensions."""
    from safetensors.torch import load_file

    tensors = {}
    for name, tensor in load_file(saved(model, library) / "model.safetensors").items():
        if "q_proj" in name or "k_proj" in name:
            halves = tensor.view(-1, 2, HEAD_SIZE // 2, tensor.shape[1])
            tensor = torch.stack((halves[:, 0], halves[:, 1]), dim=2).reshape(tensor.shape)
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        tensors[name] = tensor.contiguous()
    return tensors


def write(folder: Path, tensors: dict[str, torch.Tensor], **params: Any) -> Path:
    """The folder as Mistral gives it away; ... leaves a parameter out."""
    folder.mkdir()
    save_file(tensors, folder / "consolidated.safetensors")
    document = {key: value for key, value in {**PARAMS, **params}.items() if value is not ...}
    (folder / "params.json").write_text(json.dumps(document))
    return folder


LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
SCALED = {"use_scaled_rope": True, "rope_scaling_factor": 32, "rope_theta": 500.0}
META = {"hidden_dim": ..., "head_dim": ..., "vocab_size": -1, "multiple_of": 256, "ffn_dim_multiplier": 1.3}
EXPERTS = {"num_local_experts": 5, "num_experts_per_tok": 2}
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "mistral": ("mistral", {"sliding_window": None}, {}),
    "mistral of the first version": ("mistral", {"sliding_window": 4}, {"sliding_window": 4}),
    "the window under its newer name": ("mistral", {"sliding_window": 4}, {"_sliding_window": 4}),
    "mixtral": ("mixtral", EXPERTS, {"moe": {"num_experts": 5, "num_experts_per_tok": 2}}),
    "tied": ("mistral", {"sliding_window": None, "tie_word_embeddings": True}, {"tied_embeddings": True}),
    "Meta's llama": ("llama", {"hidden_size": 48}, {**META, "dim": 48}),
    "Meta's llama 3.2": ("llama", {"hidden_size": 48, "rope_parameters": LLAMA3}, {**META, **SCALED, "dim": 48}),
}


@pytest.mark.parametrize("case", CASES)
def test_every_head_and_the_logits_agree_with_the_library_after_its_own_conversion(case: str, tmp_path: Path) -> None:
    model_type, changes, params = CASES[case]
    model = model_of(model_type, **changes)
    folder = write(tmp_path / "native", native(model, tmp_path / "theirs"), **params)
    assert_agrees(folder, reference(model), "decoder")
    with open_checkpoint(folder) as checkpoint:
        assert [warning for warning in checkpoint.info.warnings if "tokenizer" not in warning] == []
        assert {fact.name: fact.origin for fact in checkpoint.info.facts}["heads"] == "stated"


def test_the_first_layers_attention_is_that_of_the_papers_complex_numbers(tmp_path: Path) -> None:
    """Su et al. 2021, eq. 13: dimensions 2i and 2i + 1 are one complex number, turned by m theta_i. Meta's code."""
    tensors = native(model_of("mistral", sliding_window=None), tmp_path / "theirs")
    with open_checkpoint(write(tmp_path / "native", tensors)) as checkpoint:
        trace = run_trace(checkpoint.load_model(), Inputs(ids=IDS))
    x = tensors["tok_embeddings.weight"][list(IDS)]
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * tensors["layers.0.attention_norm.weight"]
    angles = torch.outer(torch.arange(len(IDS)).float(), 10000.0 ** -(torch.arange(0, HEAD_SIZE, 2) / HEAD_SIZE))
    turns = torch.polar(torch.ones_like(angles), angles)[:, None]

    def turned(name: str, n_heads: int) -> torch.Tensor:
        projected = (x @ tensors[f"layers.0.attention.{name}.weight"].T).view(len(IDS), n_heads, HEAD_SIZE // 2, 2)
        return torch.view_as_real(torch.view_as_complex(projected.contiguous()) * turns).flatten(2)

    query, key = turned("wq", N_HEADS), turned("wk", N_KEY_HEADS)
    for head in range(N_HEADS):
        scores = query[:, head] @ key[:, head // 3].T / HEAD_SIZE**0.5
        want = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf).softmax(-1)
        np.testing.assert_allclose(trace.attention("decoder.self", 0, head), want, atol=ATTENTION_LIMIT, rtol=0)


def test_windows_are_repeated_over_the_layers(tmp_path: Path) -> None:
    tensors = native(model_of("mistral"), tmp_path / "theirs")
    with open_checkpoint(write(tmp_path / "native", tensors, sliding_window=[None, 4])) as checkpoint:
        assert checkpoint.config is not None
        layers = checkpoint.config.output_stack.layers
    assert [layer.attention.mask.window for layer in layers] == [None, 4, None, 4]


def test_it_is_saved_as_the_library_has_it(tmp_path: Path) -> None:
    model = model_of("mistral", sliding_window=4)
    folder = write(tmp_path / "native", native(model, tmp_path / "theirs"), sliding_window=4)
    with open_checkpoint(folder) as checkpoint:
        loaded = checkpoint.load_model()
    with pytest.raises(ConfigError, match="save the model as Mistral"):
        save_as_family(tmp_path / "again", loaded, "mistral_native")
    save_as_family(tmp_path / "ours", loaded, "mistral")
    want = logits_of(reference(model))
    again = MistralForCausalLM.from_pretrained(tmp_path / "ours", attn_implementation="eager")
    np.testing.assert_allclose(logits_of(reference(again)), want, atol=OUTPUT_LIMIT * max(1, want.std()), rtol=0)


def test_beside_the_librarys_files_each_is_read_as_what_it_is(tmp_path: Path) -> None:
    """As the Hub has them: config.json is about model.safetensors, params.json about consolidated.safetensors."""
    model = model_of("mistral", sliding_window=None)
    folder = write(tmp_path / "native", native(model, tmp_path / "theirs"))
    saved(model, folder)
    for path, family in ((folder, "mistral"), (folder / "consolidated.safetensors", "mistral_native")):
        with open_checkpoint(path) as checkpoint:
            assert checkpoint.info.family == family
        assert_agrees(path, reference(model), "decoder")


def test_a_folder_as_meta_gives_it_away_opens_once_it_is_converted(tmp_path: Path) -> None:
    """consolidated.00.pth and params.json; its fixed table of rotations passes silently."""
    model = model_of("llama", hidden_size=48)
    tensors = native(model, tmp_path / "theirs")
    folder = write(tmp_path / "meta", {}, **META, dim=48)
    (folder / "consolidated.safetensors").unlink()
    torch.save({**tensors, "rope.freqs": torch.ones(4)}, folder / "consolidated.00.pth")
    convert_pickle(folder, tmp_path / "out")
    assert_agrees(tmp_path / "out", reference(model), "decoder")


def test_without_params_the_number_of_heads_is_asked(tmp_path: Path) -> None:
    model = model_of("mistral", sliding_window=None)
    folder = write(tmp_path / "native", native(model, tmp_path / "theirs"))
    (folder / "params.json").unlink()
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.needs == ("n_heads",)
        with pytest.raises(ConfigError, match=r"has no params\.json: .* give n_heads"):
            checkpoint.load_model()


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"n_heads": "six"}, "n_heads is 'six' in params.json"),
        ({"n_heads": 5}, "n_kv_heads is 2 in params.json: it must divide n_heads, 5"),
        ({"n_heads": ...}, "params.json has no num_attention_heads"),
        ({"n_layers": 10**9}, "n_layers is 1000000000 in params.json"),
        ({"sliding_window": [1, 2, 3]}, "sliding_window has 3 entries in params.json"),
        ({"yarn": {"factor": 4}}, "yarn is given in params.json"),
        ({"use_scaled_rope": True}, "add rope_scaling_factor"),
        ({"moe": {"num_experts": 2, "num_experts_per_tok": 3}}, "num_experts_per_tok is 3 in params.json"),
        ({"dim": 40}, "another shape than the config asks for"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named_as_the_file_spells_it(params: dict[str, Any], told: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "native", native(model_of("mistral"), tmp_path / "theirs"), **params)
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.tensors
        with pytest.raises(CoreError) as caught:
            checkpoint.load_model()
    assert told in str(caught.value)
