"""Pixels of pictures, against the image processors of transformers that work with Pillow, and by arithmetic."""

from __future__ import annotations

import io
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import ExifTags, Image

from core_model.errors import InputError
from core_model.preprocess.picture_settings import PictureSettings, stated_settings, timm_settings
from core_model.preprocess.pictures import MAX_PIXELS, read_picture

LIBRARY: Any = transformers
AS_THEY_ARE = PictureSettings(rescale=None)
FILE = "preprocessor_config.json"


def noise(rows: int, columns: int, channels: int = 3) -> np.ndarray:
    """Smooth enough to be resized with an effect, rough enough to tell filters apart."""
    rng = np.random.default_rng(rows * columns)
    return rng.integers(0, 256, (rows, columns, channels), dtype=np.uint8)


def stored(image: Image.Image, path: Path, **options: Any) -> Path:
    image.save(path, **options)
    return path


def values(path: Path, n_channels: int = 3) -> np.ndarray:
    """What is read of a file [Y, X, K], 0 to 255."""
    return read_picture(path, AS_THEY_ARE, n_channels).pixels.transpose(1, 2, 0)


SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("ViT", {}),
    ("ViT", {"size": 32, "resample": 3, "rescale_factor": 0.1}),
    ("ViT", {"size": {"height": 30, "width": 50}, "do_normalize": False}),
    ("ViT", {"do_resize": False, "do_rescale": False}),
    ("DeiT", {}),
    ("DeiT", {"size": 40, "crop_size": 33, "image_mean": 0.1, "image_std": 2}),
    ("Beit", {"size": {"height": 20, "width": 24}, "do_center_crop": True, "crop_size": {"height": 31, "width": 15}}),
    ("Beit", {"size": [30, 20], "resample": 0}),
    ("Bit", {}),
    ("Bit", {"size": {"shortest_edge": 37}, "crop_size": {"height": 32, "width": 32}}),
    ("CLIP", {}),
    ("CLIP", {"size": 31, "crop_size": 30, "image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6]}),
    ("CLIP", {"size": 20, "crop_size": 45, "resample": 1}),
    ("Siglip", {"size": {"height": 48, "width": 48}, "resample": 2}),
    ("Siglip", {"size": 48, "do_rescale": False, "do_normalize": False}),
]


@pytest.mark.parametrize("size", [(40, 57), (61, 33), (300, 299)], ids=str)
@pytest.mark.parametrize(("processor", "keys"), SETTINGS, ids=lambda value: "-".join(value) if value else "default")
def test_pixels_are_those_of_the_library(
    processor: str, keys: dict[str, Any], size: tuple[int, int], tmp_path: Path
) -> None:
    image = Image.fromarray(noise(*size))
    reference = getattr(LIBRARY, f"{processor}ImageProcessorPil")(**keys)
    want = reference(image, return_tensors="np")["pixel_values"][0]
    settings = stated_settings({"image_processor_type": f"{processor}ImageProcessor", **keys}, "vit", 3, FILE)
    got = read_picture(stored(image, tmp_path / "picture.png"), settings, 3).pixels
    assert got.dtype == np.float32 and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["ViTFeatureExtractor", "ViTImageProcessorFast", "ViTImageProcessor", None])
def test_what_the_library_saves_is_read_under_each_name_that_its_versions_gave_it(
    name: str | None, tmp_path: Path
) -> None:
    image = Image.fromarray(noise(50, 70))
    reference = LIBRARY.ViTImageProcessorPil(size={"height": 28, "width": 42}, resample=3)
    document = {**reference.to_dict(), "image_processor_type": None, "feature_extractor_type": name}
    got = read_picture(stored(image, tmp_path / "a.png"), stated_settings(document, "vit", 3, FILE), 3).pixels
    np.testing.assert_allclose(got, reference(image, return_tensors="np")["pixel_values"][0], rtol=0, atol=1e-6)


def test_transparent_parts_lie_on_white_as_in_the_library(tmp_path: Path) -> None:
    image = Image.fromarray(noise(20, 30, 4), "RGBA")
    want = LIBRARY.CLIPImageProcessorPil(do_resize=False, do_center_crop=False)(image, return_tensors="np")
    settings = stated_settings({"do_resize": False, "do_center_crop": False}, "clip", 3, FILE)
    read = read_picture(stored(image, tmp_path / "clear.png"), settings, 3)
    np.testing.assert_allclose(read.pixels, want["pixel_values"][0], rtol=0, atol=1e-6)
    assert read.notes == ("clear.png: laid on white where it is transparent",)


@pytest.mark.parametrize(
    ("format", "mode"),
    [
        *(("PNG", mode) for mode in ("L", "LA", "P", "RGBA", "I;16")),
        *(("TIFF", mode) for mode in ("L", "LA", "P", "RGBA", "CMYK", "YCbCr", "I;16")),
        *(("PPM", mode) for mode in ("L", "I", "RGB")),
        *(("JPEG", mode) for mode in ("L", "CMYK", "RGB")),
        *(("GIF", mode) for mode in ("L", "P")),
        *(("WEBP", mode) for mode in ("RGB", "RGBA")),
        *(("BMP", mode) for mode in ("L", "P", "RGBA")),
    ],
)
def test_a_grey_square_is_grey_in_every_mode_of_every_format(format: str, mode: str, tmp_path: Path) -> None:
    """204 of 255 is 52428 of 65535, which "I" is in PPM too. JPEG and WebP lose a little."""
    is_deep = mode in ("I;16", "I")
    image = Image.new(mode, (6, 4), 204 * 257) if is_deep else Image.new("L", (6, 4), 204).convert(mode)
    path = stored(image, tmp_path / f"grey.{format.lower()}", format=format)
    assert values(path).shape == (4, 6, 3)
    np.testing.assert_allclose(values(path), 204, atol=2)


@pytest.mark.parametrize("format", ["PNG", "TIFF", "PPM", "BMP"])
def test_the_two_levels_of_a_drawing_are_black_and_white(format: str, tmp_path: Path) -> None:
    levels = noise(5, 9, 1)[..., 0] > 127
    path = stored(Image.fromarray(levels), tmp_path / f"drawing.{format.lower()}", format=format)
    np.testing.assert_array_equal(values(path, 1)[..., 0], levels * 255)


@pytest.mark.parametrize("mode", ["I", "F"])
def test_numbers_of_32_bits_are_refused_for_nothing_says_what_white_is(mode: str, tmp_path: Path) -> None:
    path = stored(Image.new(mode, (4, 4), 3), tmp_path / "heights.tiff")
    with pytest.raises(InputError, match=r"heights\.tiff holds numbers of 32 bits, of which none says what white is"):
        values(path)


def test_sixteen_bits_are_rounded_to_eight(tmp_path: Path) -> None:
    """257 x k is k / 255 of white; halfway lies 128.5 above it."""
    deep = np.array([[0, 257 * 9, 257 * 9 + 128, 257 * 9 + 129, 65535]], dtype=np.uint16)
    read = values(stored(Image.fromarray(deep), tmp_path / "deep.png"), 1)
    assert read[0, :, 0].tolist() == [0, 9, 9, 10, 255]


def test_a_model_of_one_channel_reads_the_brightness(tmp_path: Path) -> None:
    """ITU-R 601: 0.299 red + 0.587 green + 0.114 blue."""
    path = stored(Image.new("RGB", (2, 2), (100, 200, 50)), tmp_path / "green.png")
    assert values(path, 1).shape == (2, 2, 1)
    np.testing.assert_allclose(values(path, 1), 0.299 * 100 + 0.587 * 200 + 0.114 * 50, atol=1)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_is_turned_upright(orientation: int, tmp_path: Path) -> None:
    """EXIF 2.32, tag 274: where the stored first row and first column lie in what was seen."""
    seen = noise(4, 6)
    turned = {
        1: seen,
        2: seen[:, ::-1],
        3: seen[::-1, ::-1],
        4: seen[::-1],
        5: seen.transpose(1, 0, 2),
        6: seen.transpose(1, 0, 2)[::-1],
        7: seen[::-1, ::-1].transpose(1, 0, 2),
        8: seen.transpose(1, 0, 2)[:, ::-1],
    }[orientation]
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    path = stored(Image.fromarray(np.ascontiguousarray(turned)), tmp_path / "photo.png", exif=exif)
    np.testing.assert_array_equal(values(path), seen)
    notes = read_picture(path, AS_THEY_ARE, 3).notes
    assert notes == (() if orientation == 1 else ("photo.png: turned upright as its EXIF data say",))


def test_of_several_pictures_the_first_is_taken_and_that_is_said(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (5, 5), color) for color in ((255, 0, 0), (0, 255, 0), (0, 0, 255))]
    path = stored(frames[0], tmp_path / "film.gif", save_all=True, append_images=frames[1:])
    assert values(path)[0, 0].tolist() == [255, 0, 0]
    assert read_picture(path, AS_THEY_ARE, 3).notes == ("film.gif: the first of its 3 pictures taken",)


def test_what_was_done_is_said_with_width_before_height(tmp_path: Path) -> None:
    settings = PictureSettings(resize=20, crop=(10, 16))
    read = read_picture(stored(Image.fromarray(noise(40, 60)), tmp_path / "wide.png"), settings, 3)
    assert read.notes == ("wide.png: resized from 60 x 40 to 30 x 20 pixels, middle 16 x 10 cut out",)


@pytest.mark.parametrize(("spare", "start"), [(1, 0), (2, 1), (3, 2), (5, 2), (7, 4)])
def test_timm_cuts_out_the_middle_at_the_even_place(spare: int, start: int, tmp_path: Path) -> None:
    """torchvision's center crop, which timm uses, starts at round(spare / 2), and Python rounds halves to even."""
    ramp = np.arange(10 + spare, dtype=np.uint8)[None, :, None].repeat(10 + spare, 0).repeat(3, 2)
    settings = PictureSettings(crop=(10, 10), crop_rounds=True, rescale=None)
    read = read_picture(stored(Image.fromarray(ramp), tmp_path / "ramp.png"), settings, 3)
    assert read.pixels[0, 0, 0] == start


def test_timm_resizes_the_shorter_side_to_the_crop_over_its_share(tmp_path: Path) -> None:
    """timm's evaluation: floor(224 / 0.9) = 248, bicubic, the middle 224, mean and std of the config."""
    image = Image.fromarray(noise(270, 300))
    document = {"input_size": [3, 224, 224], "crop_pct": 0.9, "interpolation": "bicubic", "mean": [0.5] * 3}
    settings = timm_settings({**document, "std": [0.25] * 3}, 3)
    wide = np.asarray(image.resize((275, 248), Image.Resampling.BICUBIC))
    top, left = 12, 26  # (248 - 224) / 2 and round(25.5)
    want = (wide[top : top + 224, left : left + 224].transpose(2, 0, 1) / 255 - 0.5) / 0.25
    got = read_picture(stored(image, tmp_path / "a.png"), settings, 3).pixels
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


def broken(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(noise(64, 64)).save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"it\.png is empty \(0 bytes\)"),
        (b"hello, I am a text", r"it\.png is no picture of a kind that is read here: save it as PNG or JPEG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", "is no picture of a kind that is read here"),
        (broken("PNG")[:3000], r"it\.png cannot be read as a picture \(.*\): save or download it again"),
        (broken("JPEG")[:700], r"it\.png cannot be read as a picture \(.*truncated.*\)"),
        (broken("PNG")[:40], "cannot be read as a picture|is no picture"),
    ],
)
def test_a_file_that_is_no_whole_picture_is_refused_in_a_sentence(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "it.png").write_bytes(data)
    with pytest.raises(InputError, match=message):
        values(tmp_path / "it.png")


def test_a_picture_that_would_unpack_to_more_than_the_limit_is_refused_before_it_does(tmp_path: Path) -> None:
    """PNGs of a few bytes whose headers say so: beyond what Pillow opens, what it warns of, and what is opened here."""
    small = broken("PNG")
    for side in (60_000, 10_000, 8200):
        sides = side.to_bytes(4, "big") * 2
        path = tmp_path / "bomb.png"
        path.write_bytes(_with_header(small, sides))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with pytest.raises(InputError, match=rf"more than {MAX_PIXELS // 10**6} million pixels"):
                values(path)
        assert not warned


def _with_header(png: bytes, sides: bytes) -> bytes:
    """A PNG whose first chunk, from byte 12 to 29, says other sides, with the checksum for it."""
    chunk = png[12:16] + sides + png[24:29]
    return png[:12] + chunk + zlib.crc32(chunk).to_bytes(4, "big") + png[33:]


def test_a_thin_line_is_not_enlarged_beyond_the_limit(tmp_path: Path) -> None:
    path = stored(Image.new("L", (5000, 1)), tmp_path / "line.png")
    with pytest.raises(InputError, match="5000 x 1 pixels: with the shorter side 224 long"):
        read_picture(path, PictureSettings(resize=224), 3)


def test_a_folder_a_missing_file_and_a_pipe_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a file"):
        values(tmp_path)
    with pytest.raises(InputError, match=r"none\.png cannot be read \(No such file or directory\)"):
        values(tmp_path / "none.png")


@pytest.mark.filterwarnings("ignore")  # Pillow tells what it finds odd in a file that it reads
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM"]),
    wrong=st.lists(st.tuples(st.integers(0, 600), st.integers(0, 255)), min_size=1, max_size=6),
    length=st.integers(10, 13_000),
)
def test_a_broken_file_is_a_picture_or_a_sentence(
    kind: str, wrong: list[tuple[int, int]], length: int, tmp_path: Path
) -> None:
    data = bytearray(broken(kind)[:length])
    for place, value in wrong:
        data[place % len(data)] = value
    path = tmp_path / "it.png"
    path.write_bytes(data)
    try:
        assert values(path).shape[2] == 3
    except InputError as error:
        assert str(error).startswith("it.png ")
