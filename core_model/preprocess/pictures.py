"""A picture file as the pixels a model reads. Pillow decodes and resizes, numpy does the rest.

Shape letters: K channels, Y rows, X columns.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
from PIL import ExifTags, Image, ImageOps

from core_model.errors import InputError
from core_model.preprocess.files import open_file
from core_model.preprocess.picture_settings import FILTERS, PictureSettings, Size, shown_size
from core_model.results import FloatArray, read_only
from core_model.wording import file_name, shown

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF")
"""What is opened, as Pillow calls it. Its other readers are rarely needed, and one of them runs PostScript."""
MAX_PIXELS = 1 << 26
"""67 million. A file of a few kilobytes may unpack to any number."""

_MODES = {1: "L", 3: "RGB"}
"""Pillow's name of 8-bit pixels with so many channels."""
_WHITE = (255, 255, 255, 255)


@dataclass(frozen=True, kw_only=True, eq=False)
class Picture:
    """Pixels [K, Y, X] as a model reads them, and in words what was done to get them."""

    pixels: FloatArray
    notes: tuple[str, ...]


def read_picture(path: Path, settings: PictureSettings, n_channels: int) -> Picture:
    """The picture in a file, by the settings of a model. InputError says what is wrong with the file or its size."""
    if n_channels not in _MODES:
        raise InputError(f"the model reads {n_channels} channels, but a picture has 1 or 3: give it pixels instead")
    name = file_name(path)
    with open_file(path) as file:
        try:
            image, done = _decoded(name, file, n_channels)
        except InputError:
            raise
        except Exception as error:  # a broken file may make Pillow's readers stumble over anything
            told = f"{name} cannot be read as a picture ({shown(error)}): save or download it again"
            raise InputError(told) from error
    if settings.resize is not None:
        size = _new_size(name, (image.height, image.width), settings.resize)
        done.append(f"resized from {shown_size((image.height, image.width))} to {shown_size(size)} pixels")
        image = image.resize((size[1], size[0]), resample=FILTERS.index(settings.filter))
    values_YXK = np.asarray(image).reshape(image.height, image.width, n_channels)
    if settings.crop is not None:
        done.append(f"middle {shown_size(settings.crop)} cut out")
        values_YXK = _cropped(values_YXK, settings.crop, rounds=settings.crop_rounds)
    notes = (f"{name}: {', '.join(done)}",) if done else ()
    return Picture(pixels=read_only(_scaled(values_YXK, settings)), notes=notes)


def _decoded(name: str, file: BinaryIO, n_channels: int) -> tuple[Image.Image, list[str]]:
    """The picture upright, with as many channels as the model reads and 8 bits in each, and what that took."""
    done: list[str] = []
    try:
        with warnings.catch_warnings():  # what Pillow only warns of is beyond the limit here
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(file, formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _too_large(name) from error
    except Image.UnidentifiedImageError as error:
        raise InputError(f"{name} is no picture of a kind that is read here: save it as PNG or JPEG") from error
    if image.width * image.height > MAX_PIXELS:
        raise _too_large(name)
    if (n_frames := getattr(image, "n_frames", 1)) > 1:
        done.append(f"the first of its {n_frames} pictures taken")
    image.load()
    if image.getexif().get(ExifTags.Base.Orientation, 1) in range(2, 9):
        done.append("turned upright as its EXIF data say")
        image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16") or (image.mode, image.format) == ("I", "PPM"):
        done.append("reduced from 16 to 8 bits")
        image = Image.fromarray(np.rint(np.asarray(image) / 257).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise InputError(
            f"{name} holds numbers of 32 bits, of which none says what white is: save it with 8 or 16 bits"
        )
    if "A" in image.getbands() or "transparency" in image.info:
        image = _on_white(image, done)
    return image.convert(_MODES[n_channels]), done


def _on_white(image: Image.Image, done: list[str]) -> Image.Image:
    """The picture on a white ground."""
    image = image.convert("RGBA")
    if image.getchannel("A").getextrema() != (255, 255):
        done.append("laid on white where it is transparent")
    return Image.alpha_composite(Image.new("RGBA", image.size, _WHITE), image)


def _too_large(name: str) -> InputError:
    return InputError(f"{name} has more than {MAX_PIXELS // 10**6} million pixels, the limit: save it smaller")


def _new_size(name: str, size: Size, to: int | Size) -> Size:
    """The size to resize to: as given, or with the shorter side of a length, in proportion."""
    if isinstance(to, tuple):
        return to
    longer = int(to * max(size) / min(size))
    if longer * to > MAX_PIXELS:
        raise InputError(
            f"{name} is {shown_size(size)} pixels: with the shorter side {to} long, as the model asks, it would have "
            f"{longer * to // 10**6} million; cut it to a shape nearer to a square"
        )
    return (to, longer) if size[0] <= size[1] else (longer, to)


def _cropped(values_YXK: npt.NDArray[np.uint8], size: Size, *, rounds: bool) -> npt.NDArray[np.uint8]:
    """The middle, with zeros around it where the picture is smaller."""
    for axis, side in enumerate(size):
        spare = values_YXK.shape[axis] - side
        if spare >= 0:
            start = round(spare / 2) if rounds else spare // 2
            values_YXK = values_YXK.take(range(start, start + side), axis)
        else:
            around = [(0, 0)] * 3
            around[axis] = (-(spare // 2), -spare + spare // 2)
            values_YXK = np.pad(values_YXK, around)
    return values_YXK


def _scaled(values_YXK: npt.NDArray[np.uint8], settings: PictureSettings) -> FloatArray:
    """[K, Y, X], each value looked up among the 256 that there are."""
    table_V = (np.arange(256) * (1 if settings.rescale is None else settings.rescale)).astype(np.float32)
    n_channels = values_YXK.shape[2]
    table_KV = np.tile(table_V, (n_channels, 1))
    if settings.mean:
        mean_K1, std_K1 = (np.array(values, np.float32)[:, None] for values in (settings.mean, settings.std))
        table_KV = (table_KV - mean_K1) / std_K1
    return np.stack([table_KV[channel][values_YXK[..., channel]] for channel in range(n_channels)])
