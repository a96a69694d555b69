"""Models of images and sound, and two towers, against the transformers library: every head and the output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from transformers import PreTrainedModel

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.export import save_as_family
from core_model.errors import ConfigError, TraceError
from core_model.trace import Inputs, Trace, run_trace
from tests.core_model.checkpoint.references import ATTENTION_LIMIT, OUTPUT_LIMIT, saved, seeded

SIZES: dict[str, Any] = {
    "hidden_size": 30,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "image_size": 21,
    "patch_size": 7,
    "num_channels": 2,
    "num_labels": 3,
}
"""Unusual sizes: odd numbers of layers, heads and patches, two channels."""
WIDE = {**SIZES, "intermediate_size": 37}

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("ViT", "ForImageClassification", WIDE),
    ("ViT", "Model", {**WIDE, "image_size": [14, 21], "patch_size": [7, 3], "qkv_bias": False, "hidden_act": "relu"}),
    ("DeiT", "ForImageClassification", WIDE),
    ("DeiT", "ForImageClassificationWithTeacher", {**WIDE, "layer_norm_eps": 0.1}),
    ("DeiT", "Model", {**WIDE, "qkv_bias": False}),
    ("Dinov2", "Model", SIZES),
    ("Dinov2", "ForImageClassification", {**SIZES, "mlp_ratio": 3, "qkv_bias": False}),
    ("Dinov2", "Model", {**SIZES, "use_swiglu_ffn": True}),
    ("Dinov2WithRegisters", "Model", {**SIZES, "num_register_tokens": 3}),
    ("Dinov2WithRegisters", "ForImageClassification", {**SIZES, "use_swiglu_ffn": True}),
]


def tiny(family: str, kind: str, sizes: dict[str, Any]) -> PreTrainedModel:
    """A small model of one of the library's classes with weights that make its attention anything but flat."""
    return seeded(getattr(transformers, f"{family}{kind}")(getattr(transformers, f"{family}Config")(**sizes)))


def pixels_for(size: int | list[int], n_channels: int) -> torch.Tensor:
    rows, columns = (size, size) if isinstance(size, int) else size
    return torch.randn(n_channels, rows, columns, generator=torch.Generator().manual_seed(1))


def computed(model: PreTrainedModel, **given: torch.Tensor) -> Any:
    """What the library computes of one example, eagerly, with all attention maps."""
    model.set_attn_implementation("eager")
    library: Any = model
    with torch.no_grad():
        return library(**{name: tensor[None] for name, tensor in given.items()}, output_attentions=True)


def assert_maps_agree(trace: Trace, site: str, maps: Any) -> None:
    assert trace.shape(site)[:2] == (len(maps), maps[0].shape[1])
    assert max(float(layer.max()) for layer in maps) > 0.5, "a flat reference would agree with anything"
    for layer, heads in enumerate(maps):
        for head, want in enumerate(heads[0].numpy()):
            np.testing.assert_allclose(trace.attention(site, layer, head), want, atol=ATTENTION_LIMIT, rtol=0)


def assert_close(got: Any, want: np.ndarray) -> None:
    assert got is not None and got.shape == want.shape
    np.testing.assert_allclose(got, want, atol=OUTPUT_LIMIT * max(1.0, float(want.std())), rtol=0)


def named(case: tuple[str, str, dict[str, Any]]) -> str:
    return f"{case[0]}{case[1]}-{'-'.join(sorted(set(case[2]) - set(SIZES)))}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_head_and_the_output_agree_with_the_reference_both_ways(
    case: tuple[str, str, dict[str, Any]], tmp_path: Path
) -> None:
    model = tiny(*case)
    pixels = pixels_for(case[2]["image_size"], case[2]["num_channels"])
    want = computed(model, pixel_values=pixels)
    output = (want.logits if "logits" in want else want.last_hidden_state)[0].numpy()
    with open_checkpoint(saved(model, tmp_path / "theirs")) as checkpoint:
        assert checkpoint.info.refusal is None
        assert checkpoint.info.unexpected == ()
        ours = checkpoint.load_model()
        assert checkpoint.info.family is not None
        save_as_family(tmp_path / "ours", ours, checkpoint.info.family)
    trace = run_trace(ours, Inputs(pixels=pixels.numpy()))
    assert_maps_agree(trace, "encoder.self", want.attentions)
    assert_close(trace.logits if "logits" in want else trace.hidden, output)
    library: Any = type(model)
    again, report = library.from_pretrained(tmp_path / "ours", output_loading_info=True)
    unread = [name for name in report["missing_keys"] if "mask_token" not in name and "pooler" not in name]
    assert not unread and not report["unexpected_keys"] and not report["mismatched_keys"]
    written = computed(again, pixel_values=pixels)
    assert_close((written.logits if "logits" in want else written.last_hidden_state)[0].numpy(), output)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pixels": np.zeros((3, 21, 21))}, r"pixels have the shape \[3, 21, 21\]: .* \[2, 21, 21\]"),
        ({"pixels": np.zeros((2, 28, 28))}, r"pixels have the shape \[2, 28, 28\]: .* \[2, 21, 21\]"),
        ({"ids": [1]}, "this model reads pixels: give them"),
    ],
)
def test_other_images_than_the_model_reads_are_refused_with_the_size_expected(
    given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with open_checkpoint(saved(tiny("ViT", "Model", WIDE), tmp_path)) as checkpoint:
        model = checkpoint.load_model()
    with pytest.raises(TraceError, match=message):
        run_trace(model, Inputs(**given))


@pytest.mark.parametrize(
    ("family", "sizes"), [("ViT", WIDE), ("DeiT", WIDE), ("Dinov2", SIZES), ("Dinov2WithRegisters", SIZES)]
)
def test_without_a_config_all_but_the_number_of_heads_is_read_from_the_shapes(
    family: str, sizes: dict[str, Any], tmp_path: Path
) -> None:
    model = tiny(family, "Model", sizes)
    folder = saved(model, tmp_path)
    with open_checkpoint(folder) as checkpoint:
        stated = checkpoint.config
    (folder / "config.json").unlink()
    with open_checkpoint(folder) as checkpoint, pytest.raises(ConfigError, match="give n_heads"):
        checkpoint.load_model()
    with open_checkpoint(folder, assume={"n_heads": 5, "eps": model.config.layer_norm_eps}) as checkpoint:
        assert checkpoint.config == stated
        checkpoint.load_model()
