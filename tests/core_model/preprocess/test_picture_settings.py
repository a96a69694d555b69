"""What a preprocessor_config.json, timm's config and no file at all mean, and how a wrong key is named."""

from __future__ import annotations

from typing import Any

import pytest
import transformers

from core_model.errors import InputError
from core_model.preprocess.picture_settings import stated_settings, timm_settings, usual_settings
from core_model.preprocess.processors import PROCESSORS, USUAL

LIBRARY: Any = transformers
FILE = "preprocessor_config.json"
TIMM = {"input_size": [3, 224, 224], "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}


@pytest.mark.parametrize("processor", PROCESSORS)
def test_keys_that_are_left_out_are_as_in_the_library(processor: str) -> None:
    reference = getattr(LIBRARY, f"{processor}ImageProcessorPil")()
    left_out = stated_settings({"image_processor_type": f"{processor}ImageProcessor"}, "vit", 3, FILE)
    assert left_out == stated_settings(reference.to_dict(), "vit", 3, FILE)


@pytest.mark.parametrize(
    ("family", "side", "resize", "crop"),
    [
        ("vit", 384, (384, 384), None),
        ("deit", 384, (438, 438), (384, 384)),
        ("beit", 224, (224, 224), None),
        ("dinov2", 518, 592, (518, 518)),
        ("clip", 336, 336, (336, 336)),
        ("clip_vision", 224, 224, (224, 224)),
        ("siglip", 256, (256, 256), None),
    ],
)
def test_without_a_file_sizes_are_in_proportion_to_those_of_the_published_models(
    family: str, side: int, resize: Any, crop: Any
) -> None:
    """DeiT's article resizes to 256 / 224 of the image, 438 for 384; CLIP's models for 336 pixels state 336 and 336."""
    settings = usual_settings(family, (side, side), 3)
    assert (settings.resize, settings.crop) == (resize, crop)


@pytest.mark.parametrize("family", USUAL)
def test_every_family_has_settings_for_pictures_that_are_not_square_and_have_one_channel(family: str) -> None:
    settings = usual_settings(family, (112, 224), 1)
    assert settings.crop in (None, (112, 224))
    assert len(settings.mean) == len(settings.std) == 1


def test_the_settings_are_said_in_words() -> None:
    clip = usual_settings("clip", (224, 224), 3)
    assert clip.summary == (
        "shorter side made 224 pixels (bicubic), middle 224 x 224 cut out, values from 0 to 1, "
        "minus 0.4815, 0.4578, 0.4082, divided by 0.2686, 0.2613, 0.2758"
    )
    assert stated_settings(
        dict.fromkeys(("do_resize", "do_rescale", "do_normalize"), False), "vit", 3, FILE
    ).summary == ("pixels as they are")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"image_processor_type": "ConvNextImageProcessor"}, "image_processor_type is 'ConvNextImageProcessor' in"),
        ({"do_pad": True}, "asks for 'do_pad', a step that is not done here"),
        (
            {"size": {"longest_edge": 300}},
            "size names longest_edge in .*: expected shortest_edge, or height and width",
        ),
        ({"size": {"shortest_edge": 0}}, r"size is \[0, 0\] in .*: expected rows and columns of 1 to 4096 pixels"),
        ({"size": 10**9}, r"size is \[1000000000, 1000000000\] in"),
        ({"size": [1, 2, 3]}, r"size is \[1, 2, 3\] in"),
        ({"size": "large"}, "size is 'large' in preprocessor_config.json: expected int"),
        ({"do_center_crop": True, "crop_size": {"shortest_edge": 3}}, r"crop_size is \[\] in"),
        ({"resample": 9}, "resample is 9 in .*: expected one of Pillow's filters, 0 to 5"),
        ({"resample": "bicubic"}, "resample is 'bicubic' in preprocessor_config.json: expected int"),
        ({"size": {"shortest_edge": "long"}}, "size is {'shortest_edge': 'long'} in .*: expected int . null in it"),
        ({"image_mean": [0.5]}, "image_mean has 1 values in .*: the model reads 3 channels"),
        ({"image_std": [0.5, 0, 0.5]}, r"image_std is \[0.5, 0.0, 0.5\] in .*: nothing can be divided by 0"),
        ({"image_mean": [0.5, float("inf"), 0.5]}, "image_mean is .* in .*: finite numbers were expected"),
        ({"rescale_factor": 0}, "rescale_factor is 0 in .*: every pixel would be the same"),
        ({"rescale_factor": 1e36}, r"rescale_factor is \[1e\+36\] in .*: expected sizes of 1e-06 to 1e\+06"),
        ({"image_mean": 3e38}, r"image_mean is \[3e\+38, 3e\+38, 3e\+38\] in .*: expected sizes of 0 to 1e\+06"),
        ({"image_std": 1e-40}, r"image_std is \[1e-40, .*: expected sizes of 1e-06 to 1e\+06"),
    ],
)
def test_a_wrong_key_is_named_with_its_value_and_its_file(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        stated_settings(document, "vit", 3, FILE)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"input_size": [224, 224]}, r"input_size is \[224, 224\] in pretrained_cfg of config.json: expected channels"),
        ({"input_size": [3, 224, 448]}, "only squares are cut out here"),
        ({"input_size": [3, 4000, 4000], "crop_pct": 0.5}, r"input_size / crop_pct is \[8000, 8000\] in"),
        ({"crop_mode": "border"}, "crop_mode is 'border' in .*: only center and squash are done here"),
        ({"interpolation": "random"}, "interpolation is 'random' in"),
        ({"crop_pct": 0}, "crop_pct is 0 in .*: expected a share of the picture, 0.1 to 1"),
        ({"mean": "dark"}, "mean is 'dark' in pretrained_cfg of config.json: expected array"),
    ],
)
def test_a_wrong_key_of_timm_is_named_with_its_value(more: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        timm_settings({**TIMM, **more}, 3)


def test_timm_may_squash_a_picture_instead_of_cutting_it() -> None:
    settings = timm_settings({**TIMM, "input_size": [3, 96, 192], "crop_mode": "squash", "crop_pct": 0.75}, 3)
    assert (settings.resize, settings.crop) == ((128, 256), (96, 192))


def test_images_beyond_all_measure_have_no_usual_settings() -> None:
    with pytest.raises(InputError, match=r"image_size is \[100000, 100000\] in config.json"):
        usual_settings("native", (100_000, 100_000), 3)
