"""How a picture becomes the pixels of one model: what its preprocessor_config.json, or timm's config.json, asks for.

Keys mean what they mean to the image processors of transformers that work with Pillow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from core_model.errors import InputError
from core_model.keys import read_keys
from core_model.preprocess.processors import IMAGENET, PROCESSORS, READ_SHORTER_SIDE, USUAL, processor_of
from core_model.wording import shown, some_of

Filter: TypeAlias = Literal["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"]
"""In the order of Pillow's numbers for them, which a preprocessor_config.json has."""
Size: TypeAlias = tuple[int, int]
"""Rows and columns of pixels."""
FILTERS: tuple[Filter, ...] = get_args(Filter)

MAX_SIDE = 4096
"""Pixels of a side, several times as many as published models read."""
_LARGEST = 1e6
"""Of what pixels are multiplied by, or have taken off."""
_SMALLEST = 1e-6
"""Of what they are multiplied or divided by."""
_TIMM_FILE = "pretrained_cfg of config.json"
_STEPS = {"do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb", "do_reduce_labels"}
"""Steps that are done; the last is one of segmentation maps, not of pictures."""


@dataclass(frozen=True, kw_only=True)
class PictureSettings:
    """The steps in their order; one that is None is left out.

    `resize` is the length of the shorter side, or rows and columns. `crop` is the middle, of a smaller picture with
    zeros around it; where it lies between two pixels, the upper left one is taken, or with `crop_rounds` the even one.
    Values 0 to 255 are multiplied by `rescale`, then have `mean` taken off and are divided by `std`, one a channel.
    """

    resize: int | Size | None = None
    filter: Filter = "bicubic"
    crop: Size | None = None
    crop_rounds: bool = False
    rescale: float | None = 1 / 255
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()

    @property
    def summary(self) -> str:
        """The steps in words."""
        steps = []
        if self.resize is not None:
            what = f"shorter side made {self.resize}" if isinstance(self.resize, int) else shown_size(self.resize)
            steps.append(f"{what} pixels ({self.filter})")
        if self.crop is not None:
            steps.append(f"middle {shown_size(self.crop)} cut out")
        if self.rescale is not None:
            steps.append("values from 0 to 1" if self.rescale == 1 / 255 else f"values times {self.rescale:g}")
        if self.mean:
            steps.append(f"minus {_listed(self.mean)}, divided by {_listed(self.std)}")
        return ", ".join(steps) or "pixels as they are"


def shown_size(size: Size) -> str:
    """A size as people say it of pictures: width x height."""
    return f"{size[1]} x {size[0]}"


@dataclass(frozen=True, kw_only=True)
class _Keys:
    """The keys of a preprocessor_config.json that decide what is computed."""

    size: int | list[int] | dict[str, int | None] | None = None
    crop_size: int | list[int] | dict[str, int | None] | None = None
    resample: int = 2
    do_resize: bool = True
    do_center_crop: bool = False
    do_rescale: bool = True
    rescale_factor: float = 1 / 255
    do_normalize: bool = True
    image_mean: float | list[float] = field(default_factory=list)
    image_std: float | list[float] = field(default_factory=list)
    default_to_square: bool = True


@dataclass(frozen=True, kw_only=True)
class _TimmKeys:
    """The keys of timm's pretrained_cfg that decide what is computed."""

    input_size: list[int]
    crop_pct: float = 0.875
    crop_mode: str = "center"
    interpolation: str = "bilinear"
    mean: list[float] = field(default_factory=lambda: IMAGENET["image_mean"])
    std: list[float] = field(default_factory=lambda: IMAGENET["image_std"])


def stated_settings(document: Mapping[str, Any], family: str, n_channels: int, file: str) -> PictureSettings:
    """What a preprocessor_config.json asks for; a key it leaves out is as in the image processor it names.

    InputError names a step that is not done here, or a wrong key, in `file`.
    """
    processor = processor_of(document, family, file)
    unknown = [key for key, does in document.items() if key.startswith("do_") and does is True and key not in _STEPS]
    if unknown:
        raise InputError(f"{file} asks for {shown(repr(unknown[0]))}, a step that is not done here")
    stated = {key: value for key, value in document.items() if value is not None}
    reads = {"default_to_square": processor not in READ_SHORTER_SIDE}
    keys = read_keys({**reads, **PROCESSORS[processor], **stated}, _Keys, file, InputError)
    if not 0 <= keys.resample < len(FILTERS):
        raise InputError(f"resample is {keys.resample} in {file}: expected one of Pillow's filters, 0 to 5")
    if keys.do_rescale and not keys.rescale_factor:
        raise InputError(f"rescale_factor is 0 in {file}: every pixel would be the same")
    if keys.do_rescale:
        _require_moderate("rescale_factor", [keys.rescale_factor], _SMALLEST, file)
    return PictureSettings(
        resize=_resize(keys, file) if keys.do_resize else None,
        filter=FILTERS[keys.resample],
        crop=_crop(keys.crop_size, file) if keys.do_center_crop else None,
        rescale=keys.rescale_factor if keys.do_rescale else None,
        mean=_each("image_mean", keys.image_mean, n_channels, file) if keys.do_normalize else (),
        std=_each("image_std", keys.image_std, n_channels, file) if keys.do_normalize else (),
    )


def timm_settings(document: Mapping[str, Any], n_channels: int) -> PictureSettings:
    """What timm's pretrained_cfg asks for, as timm evaluates its models. InputError as above."""
    keys = read_keys(document, _TimmKeys, _TIMM_FILE, InputError)
    if len(keys.input_size) != 3:
        raise InputError(f"input_size is {keys.input_size} in {_TIMM_FILE}: expected channels, rows, columns")
    if keys.crop_mode not in ("center", "squash"):
        raise InputError(f"crop_mode is {keys.crop_mode!r} in {_TIMM_FILE}: only center and squash are done here")
    if keys.interpolation not in FILTERS:
        raise InputError(f"interpolation is {keys.interpolation!r} in {_TIMM_FILE}: expected {', '.join(FILTERS)}")
    if not 0.1 <= keys.crop_pct <= 1:
        raise InputError(f"crop_pct is {keys.crop_pct:g} in {_TIMM_FILE}: expected a share of the picture, 0.1 to 1")
    crop = _size("input_size", keys.input_size[1:], _TIMM_FILE)
    wide = _size("input_size / crop_pct", [math.floor(side / keys.crop_pct) for side in crop], _TIMM_FILE)
    squashes = keys.crop_mode == "squash"
    if not squashes and crop[0] != crop[1]:
        raise InputError(f"input_size is {keys.input_size} in {_TIMM_FILE}: only squares are cut out here")
    return PictureSettings(
        resize=wide if squashes else wide[0],
        filter=FILTERS[FILTERS.index(keys.interpolation)],
        crop=crop,
        crop_rounds=True,
        mean=_each("mean", keys.mean, n_channels, _TIMM_FILE),
        std=_each("std", keys.std, n_channels, _TIMM_FILE),
    )


def usual_settings(family: str, image_size: Size, n_channels: int) -> PictureSettings:
    """What the published models of a family do, in proportion to the images that a model was trained on."""
    processor, keys = USUAL[family]
    document = {"image_processor_type": f"{processor}ImageProcessor", **keys}
    if n_channels != 3:
        document |= {"image_mean": 0.5, "image_std": 0.5}
    settings = stated_settings(document, family, n_channels, "the usual settings")
    (rows, columns), at_224 = _size("image_size", list(image_size), "config.json"), settings.resize
    if isinstance(at_224, int):
        resize = at_224 * max(image_size) // 224
    else:
        resize = at_224 and (at_224[0] * rows // 224, at_224[1] * columns // 224)
    return replace(settings, resize=resize, crop=settings.crop and image_size)


def _resize(keys: _Keys, file: str) -> int | Size:
    """The length of the shorter side, or rows and columns."""
    size = keys.size
    if isinstance(size, int):
        both = _size("size", [size, size], file)
        return both if keys.default_to_square else both[0]
    if isinstance(size, dict):
        sides = {key: side for key, side in size.items() if side is not None}
        if sides.keys() == {"shortest_edge"}:
            return _size("size", [sides["shortest_edge"]] * 2, file)[0]
        if sides.keys() != {"height", "width"}:
            raise InputError(f"size names {some_of(sides)} in {file}: expected shortest_edge, or height and width")
        size = [sides["height"], sides["width"]]
    return _size("size", size or [], file)


def _crop(size: int | list[int] | dict[str, int | None] | None, file: str) -> Size:
    if isinstance(size, dict):
        size = [side for side in (size.get("height"), size.get("width")) if side is not None]
    return _size("crop_size", [size, size] if isinstance(size, int) else size or [], file)


def _size(key: str, sides: list[int], place: str) -> Size:
    if len(sides) != 2 or not all(1 <= side <= MAX_SIDE for side in sides):
        raise InputError(f"{key} is {shown(sides)} in {place}: expected rows and columns of 1 to {MAX_SIDE} pixels")
    return sides[0], sides[1]


def _each(key: str, values: float | list[float], n_channels: int, place: str) -> tuple[float, ...]:
    """One value a channel."""
    each = values if isinstance(values, list) else [values] * n_channels
    if len(each) != n_channels:
        raise InputError(f"{key} has {len(each)} values in {place}: the model reads {n_channels} channels")
    if key.endswith("std") and not all(each):
        raise InputError(f"{key} is {each} in {place}: nothing can be divided by 0")
    _require_moderate(key, each, _SMALLEST if key.endswith("std") else 0.0, place)
    return tuple(each)


def _require_moderate(key: str, values: Sequence[float], least: float, place: str) -> None:
    """Refuse what makes pixels that no float32 can hold, or nothing but zeros, of any picture."""
    if not all(least <= abs(value) <= _LARGEST for value in values):
        raise InputError(f"{key} is {shown(values)} in {place}: expected sizes of {least:g} to {_LARGEST:g}")


def _listed(values: tuple[float, ...]) -> str:
    same = len(set(values)) == 1
    return f"{values[0]:.4g}" if same else ", ".join(f"{value:.4g}" for value in values)
