"""What patches and frames are called."""

from __future__ import annotations

import pytest

from core_model.config import PatchEmbedding
from core_model.preprocess.tokens import frame_tokens, patch_tokens

PATCHES = ["patch 0,0", "patch 0,1", "patch 0,2", "patch 1,0", "patch 1,1", "patch 1,2"]


@pytest.mark.parametrize(
    ("n_class", "n_registers", "before"),
    [
        pytest.param(0, 0, [], id="SigLIP"),
        pytest.param(1, 0, ["class"], id="ViT, CLIP"),
        pytest.param(2, 0, ["class", "distillation"], id="DeiT"),
        pytest.param(1, 3, ["class", "register 0", "register 1", "register 2"], id="DINOv2 with registers"),
        pytest.param(5, 0, ["class", "register 0", "register 1", "register 2", "register 3"], id="timm, all placed"),
        pytest.param(0, 3, ["class", "register 0", "register 1"], id="timm, none placed"),
    ],
)
def test_learned_vectors_come_before_the_patches_row_by_row(n_class: int, n_registers: int, before: list[str]) -> None:
    spec = PatchEmbedding(image_size=(4, 9), patch_size=(2, 3), n_class_tokens=n_class, n_registers=n_registers)
    tokens = patch_tokens(spec, (4, 9))
    assert tokens.texts == (*before, *PATCHES)
    assert len(tokens) == spec.n_tokens((4, 9)) == len(set(tokens.ids))
    assert tokens.special == (True,) * len(before) + (False,) * 6


@pytest.mark.parametrize(("n_class", "n_registers"), [(2, 0), (0, 2)])
def test_without_a_class_token_all_learned_vectors_are_registers(n_class: int, n_registers: int) -> None:
    """timm's vit_*_reg4_gap: the mean of the patches stands for the picture."""
    spec = PatchEmbedding(
        image_size=(4, 9),
        patch_size=(2, 3),
        n_class_tokens=n_class,
        n_registers=n_registers,
        has_class_token=False,
    )
    assert patch_tokens(spec, (4, 9)).texts == ("register 0", "register 1", *PATCHES)


def test_patches_are_counted_in_the_pixels_given_not_those_of_training() -> None:
    spec = PatchEmbedding(image_size=(224, 224), patch_size=(16, 16))
    assert patch_tokens(spec, (33, 50)).texts == ("class", *PATCHES)


def test_frames_are_called_by_their_time_and_those_of_the_silence_behind_count_as_added() -> None:
    """Whisper's second convolution takes every other spectrum, and there is one every 10 ms."""
    tokens = frame_tokens(5, 2 * 160 / 16000, duration=0.05)
    assert tokens.texts == ("0.00 s", "0.02 s", "0.04 s", "0.06 s", "0.08 s")
    assert tokens.special == (False, False, False, True, True)


def test_frames_closer_than_a_hundredth_of_a_second_have_different_names() -> None:
    assert frame_tokens(3, 0.0125, duration=1).texts == ("0.000 s", "0.013 s", "0.025 s")
