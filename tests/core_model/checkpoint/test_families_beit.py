"""What BEiT and data2vec-vision have of their own: tables of positions and norms that their config may leave unused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from safetensors.numpy import load_file

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.export import save_as_family
from core_model.errors import ConfigError
from core_model.trace import Inputs, run_trace
from tests.core_model.checkpoint.pictures import SHARED, computed, pixels_for, tiny
from tests.core_model.checkpoint.references import assert_close, assert_maps_agree, edit_config, saved


def test_the_norms_of_encoder_and_head_that_share_a_name_are_kept_apart(tmp_path: Path) -> None:
    """The library writes `beit.layernorm` and `layernorm` but takes one for the other when it reads them back."""
    model = tiny("Beit", "ForMaskedImageModeling", {**SHARED, "vocab_size": 17, "use_mean_pooling": False})
    pixels = pixels_for(21, 2)
    want = computed(model, pixel_values=pixels).logits[0].numpy()
    with open_checkpoint(saved(model, tmp_path / "theirs")) as checkpoint:
        assert checkpoint.info.unexpected == ()
        assert any(told.startswith("use_mean_pooling is false") for told in checkpoint.info.warnings)
        ours = checkpoint.load_model()
    save_as_family(tmp_path / "ours", ours, "beit")
    assert_close(run_trace(ours, Inputs(pixels=pixels.numpy())).logits, want)
    theirs, written = (load_file(tmp_path / one / "model.safetensors") for one in ("theirs", "ours"))
    assert theirs.keys() == written.keys()
    for name, tensor in theirs.items():
        np.testing.assert_array_equal(written[name], tensor, err_msg=name)


OWN_TABLE, SHARED_TABLE = "use_relative_position_bias", "use_shared_relative_position_bias"


@pytest.mark.parametrize("family", ["Beit", "Data2VecVision"])
@pytest.mark.parametrize("n_layers", [1, 3])
@pytest.mark.parametrize(
    "told",
    [
        {OWN_TABLE: False, SHARED_TABLE: True},
        {OWN_TABLE: True, SHARED_TABLE: False},
        {OWN_TABLE: ..., SHARED_TABLE: True},
        {OWN_TABLE: ..., SHARED_TABLE: ..., "use_absolute_position_embeddings": ...},
    ],
    ids=str,
)
def test_of_stored_positions_those_are_used_that_the_config_says_and_the_others_told(
    family: str, n_layers: int, told: dict[str, Any], tmp_path: Path
) -> None:
    sizes = {**SHARED, "use_relative_position_bias": True, "num_hidden_layers": n_layers}
    folder = saved(tiny(family, "Model", {**sizes, "use_absolute_position_embeddings": True}), tmp_path)
    edit_config(folder, **told)
    pixels = pixels_for(21, 2)
    library = getattr(transformers, f"{family}Model").from_pretrained(folder, attn_implementation="eager")
    want = computed(library, pixel_values=pixels)
    with open_checkpoint(folder) as checkpoint:
        unused = [key for key, value in told.items() if value is not True]
        assert all(any(line.startswith(f"{key} is false") for line in checkpoint.info.warnings) for key in unused)
        trace = run_trace(checkpoint.load_model(), Inputs(pixels=pixels.numpy()))
    assert_maps_agree(trace, "encoder.self", want.attentions)
    assert_close(trace.hidden, want.last_hidden_state[0].numpy())


@pytest.mark.parametrize("family", ["Beit", "Data2VecVision"])
def test_a_last_norm_that_the_config_does_not_ask_for_stays_unused_and_is_told(family: str, tmp_path: Path) -> None:
    folder = saved(tiny(family, "Model", {**SHARED, "use_mean_pooling": False}), tmp_path)
    edit_config(folder, use_mean_pooling=...)
    pixels = pixels_for(21, 2)
    library = getattr(transformers, f"{family}Model").from_pretrained(folder, attn_implementation="eager")
    want = computed(library, pixel_values=pixels).last_hidden_state[0].numpy()
    with open_checkpoint(folder) as checkpoint:
        assert any(
            told.startswith("use_mean_pooling is true in config.json, or absent") for told in checkpoint.info.warnings
        )
        assert_close(run_trace(checkpoint.load_model(), Inputs(pixels=pixels.numpy())).hidden, want)


@pytest.mark.parametrize(("size", "is_told"), [([14, 21], True), (21, False)])
def test_that_the_library_mixes_up_biases_of_a_picture_that_is_not_square_is_told(
    size: int | list[int], is_told: bool, tmp_path: Path
) -> None:
    with open_checkpoint(saved(tiny("Beit", "Model", {**SHARED, "image_size": size}), tmp_path)) as checkpoint:
        assert checkpoint.info.refusal is None
        assert any(told.startswith("the patches are 2 rows of 3") for told in checkpoint.info.warnings) == is_told


def test_a_layer_with_two_tables_of_biases_is_refused_by_the_names_of_both_keys(tmp_path: Path) -> None:
    model = tiny("Beit", "Model", {**SHARED, "use_relative_position_bias": True})
    with open_checkpoint(saved(model, tmp_path)) as checkpoint, pytest.raises(ConfigError, match="are both true"):
        checkpoint.load_model()
