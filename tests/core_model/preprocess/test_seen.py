from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from core_model.preprocess.picture_settings import PictureSettings
from core_model.preprocess.pictures import read_picture
from core_model.preprocess.seen import as_seen

COLORS_YXK = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)


@pytest.mark.parametrize(
    "settings",
    [
        PictureSettings(rescale=None),
        PictureSettings(),
        PictureSettings(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
        PictureSettings(rescale=1 / 127.5, mean=(1.0, 1.0, 1.0), std=(1.0, 1.0, 1.0)),
    ],
)
def test_a_picture_read_for_a_model_is_seen_as_it_was(tmp_path: Path, settings: PictureSettings) -> None:
    Image.fromarray(COLORS_YXK).save(tmp_path / "a.png")
    pixels_KYX = read_picture(tmp_path / "a.png", settings, 3).pixels
    np.testing.assert_array_equal(as_seen(pixels_KYX, settings), COLORS_YXK)


def test_one_channel_is_seen_grey(tmp_path: Path) -> None:
    Image.fromarray(COLORS_YXK[..., 0]).save(tmp_path / "a.png")
    settings = PictureSettings(mean=(0.5,), std=(0.25,))
    seen = as_seen(read_picture(tmp_path / "a.png", settings, 1).pixels, settings)
    np.testing.assert_array_equal(seen, np.repeat(COLORS_YXK[..., :1], 3, axis=2))
