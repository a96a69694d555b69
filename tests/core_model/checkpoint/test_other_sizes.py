"""Pictures of another size than a model was trained for: positions from between the learned ones, as the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from core_model.checkpoint import open_checkpoint
from core_model.errors import TraceError
from core_model.trace import Inputs, Trace, run_trace
from tests.core_model.checkpoint.references import ATTENTION_LIMIT, OUTPUT_LIMIT, saved, seeded

SIDE, PATCH = 40, 8
VIT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "image_size": SIDE, "patch_size": PATCH}
TOWER = {**VIT, "intermediate_size": 40}
LIBRARY: Any = transformers


def computed(config: Any, model: Any, folder: Path, rows: int, columns: int) -> tuple[Any, Trace]:
    """What the library and ours compute of one picture."""
    library = seeded(model(config))
    library.set_attn_implementation("eager")
    generator = torch.Generator().manual_seed(3)
    pixels = torch.randn(3, rows, columns, generator=generator)
    offers = {} if "dinov2" in config.model_type else {"interpolate_pos_encoding": True}
    with torch.no_grad():
        want = library(pixel_values=pixels[None], output_attentions=True, **offers)
    with open_checkpoint(saved(library, folder)) as checkpoint:
        ours = checkpoint.load_model()
    return want, run_trace(ours, Inputs(pixels=pixels.numpy()))


@pytest.mark.parametrize("size", [(56, 56), (16, 16), (24, 64), (43, 40), (56, 8)], ids=str)
@pytest.mark.parametrize(
    ("family", "site", "sizes"),
    [
        ("ViT", "encoder.self", TOWER),
        ("DeiT", "encoder.self", TOWER),
        ("Dinov2", "encoder.self", VIT),
        ("Dinov2WithRegisters", "encoder.self", VIT),
        ("CLIPVision", "vision.self", TOWER),
        ("SiglipVision", "vision.self", TOWER),
    ],
)
def test_every_head_agrees_with_the_reference(
    family: str, site: str, sizes: dict[str, Any], size: tuple[int, int], tmp_path: Path
) -> None:
    config, model = getattr(LIBRARY, f"{family}Config")(**sizes), getattr(LIBRARY, f"{family}Model")
    want, trace = computed(config, model, tmp_path, *size)
    for layer, heads in enumerate(want.attentions):
        for head, map_NM in enumerate(heads[0].numpy()):
            np.testing.assert_allclose(trace.attention(site, layer, head), map_NM, atol=ATTENTION_LIMIT, rtol=0)
    np.testing.assert_allclose(trace.hidden, want.last_hidden_state[0].numpy(), atol=OUTPUT_LIMIT, rtol=0)


@pytest.mark.parametrize(
    ("size", "notes"),
    [
        ((40, 40), ()),
        ((56, 24), ("positions of 7 x 3 patches interpolated from the 5 x 5 learned (bicubic)",)),
        ((44, 47), ("4 rows and 7 columns of pixels at the end left out: not enough for a patch",)),
        ((40, 41), ("1 column of pixels at the end left out: not enough for a patch",)),
    ],
)
def test_the_trace_says_what_is_interpolated_and_what_is_left_out(
    size: tuple[int, int], notes: tuple[str, ...], tmp_path: Path
) -> None:
    """44 x 47 pixels hold as many whole patches of 8 x 8 as 40 x 40: nothing is interpolated."""
    _, trace = computed(LIBRARY.ViTConfig(**TOWER), LIBRARY.ViTModel, tmp_path, *size)
    assert trace.notes == notes


def test_positions_that_cannot_be_interpolated_refuse_another_size_by_naming_both(tmp_path: Path) -> None:
    config = LIBRARY.BeitConfig(**TOWER, use_relative_position_bias=True)
    with open_checkpoint(saved(seeded(LIBRARY.BeitModel(config)), tmp_path)) as checkpoint:
        model = checkpoint.load_model()
    with pytest.raises(TraceError, match=r"pixels are 56 x 40 .*between patches of 40 x 40 only"):
        run_trace(model, Inputs(pixels=np.zeros((3, 56, 40))))
