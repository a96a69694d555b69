"""Attention over patches against the maps of transformers, cut up by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from core_model.analysis.patches import patch_attention
from core_model.checkpoint import open_checkpoint
from core_model.config import PatchEmbedding
from core_model.trace import Inputs, Trace, run_trace
from tests.core_model.checkpoint.references import ATTENTION_LIMIT, saved, seeded

ROWS, COLUMNS, SIDE, N_REGISTERS, TRAINED = 3, 2, 4, 2, 4
N_BEFORE = 1 + N_REGISTERS
LAYER, HEAD = 1, 2


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trace, PatchEmbedding, np.ndarray]:
    """A trace of a tiny DINOv2 with registers, its embedding, and one head's matrix as transformers computes it."""
    sizes: dict[str, Any] = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3}
    config = transformers.Dinov2WithRegistersConfig(
        **sizes, image_size=TRAINED * SIDE, patch_size=SIDE, num_register_tokens=N_REGISTERS
    )
    model = seeded(transformers.Dinov2WithRegistersModel(config))
    model.set_attn_implementation("eager")
    pixels = torch.randn(3, ROWS * SIDE, COLUMNS * SIDE, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        maps = model(pixels[None], output_attentions=True).attentions
    folder: Path = saved(model, tmp_path_factory.mktemp("dinov2"))
    with open_checkpoint(folder) as checkpoint:
        ours = checkpoint.load_model()
    patches = ours.config.stacks["encoder"].embedding
    assert isinstance(patches, PatchEmbedding)
    return run_trace(ours, Inputs(pixels=pixels.numpy())), patches, maps[LAYER][0, HEAD].numpy()


@pytest.mark.parametrize(
    ("query", "place"), [(0, None), (N_BEFORE - 1, None), (N_BEFORE, (0, 0)), (N_BEFORE + 5, (2, 1))]
)
def test_a_row_lies_on_the_grid_row_by_row_behind_class_and_registers(
    run: tuple[Trace, PatchEmbedding, np.ndarray], query: int, place: tuple[int, int] | None
) -> None:
    trace, patches, matrix = run
    found = patch_attention(trace, patches, (ROWS * SIDE, COLUMNS * SIDE), "encoder.self", LAYER, HEAD, query)
    assert found.place == place and found.weights.shape == (ROWS, COLUMNS)
    for row in range(ROWS):
        for column in range(COLUMNS):
            want = matrix[query, N_BEFORE + row * COLUMNS + column]
            assert found.weights[row, column] == pytest.approx(want, abs=ATTENTION_LIMIT)
    np.testing.assert_allclose(found.before, matrix[query, :N_BEFORE], atol=ATTENTION_LIMIT)
