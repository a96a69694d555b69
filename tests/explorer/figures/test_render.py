"""What is in the files: sizes, colours of cells, text, and nothing that should not be there."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QByteArray, QRectF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from explorer.figures.files import FIGURE_FORMATS, ExportError
from explorer.figures.layout import lay_out
from explorer.figures.render import fonts, preview, render, save_figure, unprintable
from explorer.figures.spec import FigureOptions, FigureSpec
from explorer.viewmodels.colormaps import lookup_table

pytestmark = pytest.mark.usefixtures("qapp")  # an SVG is checked by drawing it with Qt

EIGHT = np.arange(64).reshape(8, 8) / 63


def png(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def svg_pixels(content: bytes, times: float) -> np.ndarray:
    """The SVG as drawn by Qt, an independent renderer, `times` as large as its points."""
    renderer = QSvgRenderer(QByteArray(content))
    size = renderer.viewBoxF().size() * times
    image = QImage(round(size.width()), round(size.height()), QImage.Format.Format_RGB888)
    image.fill(0xFFFFFF)
    painter = QPainter(image)
    renderer.render(painter, QRectF(0, 0, size.width(), size.height()))
    painter.end()
    rows = np.frombuffer(image.constBits(), dtype=np.uint8).reshape(image.height(), image.bytesPerLine())
    return rows[:, : 3 * image.width()].reshape(image.height(), image.width(), 3).copy()  # the image goes


def pdf_pixels(content: bytes, folder: Path, dpi: float) -> np.ndarray:
    (folder / "figure.pdf").write_bytes(content)
    subprocess.run(["pdftoppm", "-r", str(dpi), "-png", "figure.pdf", "page"], cwd=folder, check=True)
    return png(next(folder.glob("page*.png")).read_bytes())


needs_poppler = pytest.mark.skipif(shutil.which("pdftoppm") is None, reason="runs where poppler-utils is installed")


def assert_crisp(spec: FigureSpec, pixels: np.ndarray, times: float, *, soft_edge: int) -> None:
    """Every cell has its one colour up to `soft_edge` pixels from its edges; `times` is pixels a point."""
    box = lay_out(spec, fonts()).matrix
    (n_rows, n_cols), (down, across) = spec.picture.values.shape, spec.picture.cells
    height, width = spec.picture.rows[1], spec.picture.cols[1]
    expected = lookup_table(spec.colormap)[np.rint(spec.picture.values * 255).astype(int), :3].astype(int)
    for row in range(n_rows):
        for col in range(n_cols):
            top, bottom = ((box.top + box.height * min(edge * down / height, 1)) * times for edge in (row, row + 1))
            left, right = ((box.left + box.width * min(edge * across / width, 1)) * times for edge in (col, col + 1))
            frame = 1 + round(0.4 * times)  # the matrix has a frame, half of it inside
            inset = soft_edge + frame
            cell = pixels[round(top) + inset : round(bottom) - inset, round(left) + inset : round(right) - inset]
            assert cell.size
            difference = np.abs(cell.astype(int) - expected[row, col])
            assert difference.max() <= 1, (row, col)


def assert_no_seams(spec: FigureSpec, pixels: np.ndarray, times: float) -> None:
    """In a matrix of one value no pixel differs, across the boundaries of cells too."""
    box = lay_out(spec, fonts()).matrix
    inset = 2 + round(0.4 * times)
    inside = pixels[
        round(box.top * times) + inset : round(box.bottom * times) - inset,
        round(box.left * times) + inset : round(box.right * times) - inset,
    ]
    assert np.ptp(inside.reshape(-1, 3), axis=0).max() <= 1  # one of 255: rounding of the renderer


# Size


@pytest.mark.parametrize("width_mm", [85.0, 114.0, 174.0])
def test_a_png_has_the_pixels_of_its_width_and_resolution_and_says_its_resolution(make_spec, width_mm):
    image = Image.open(io.BytesIO(render(make_spec(options=FigureOptions(width_mm=width_mm, dpi=400)), "png")))
    assert image.width == round(width_mm / 25.4 * 400)
    assert image.info["dpi"] == pytest.approx((400, 400), abs=0.1)


def test_the_page_of_a_pdf_and_of_an_svg_has_the_width_asked_for(make_spec):
    spec = make_spec(options=FigureOptions(width_mm=85))
    points = 85 / 25.4 * 72
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) [\d.]+ \]", render(spec, "pdf"))
    assert box and float(box[1]) == pytest.approx(points, abs=0.01)
    root = ElementTree.fromstring(render(spec, "svg"))
    assert float(root.get("width", "").removesuffix("pt")) == pytest.approx(points, abs=0.01)


# Cells: matplotlib#2972 #19984, pyqtgraph#315


def test_cells_of_a_png_are_crisp(make_spec):
    spec = make_spec(values=EIGHT, options=FigureOptions(dpi=300))
    assert_crisp(spec, png(render(spec, "png")), 300 / 72, soft_edge=0)


def test_cells_of_an_svg_are_crisp_at_800_percent(make_spec):
    spec = make_spec(values=EIGHT)
    assert_crisp(spec, svg_pixels(render(spec, "svg"), 8 * 96 / 72), 8 * 96 / 72, soft_edge=2)


SHORT_LAST = {"shape": (30, 30), "rows": (0, 30), "cols": (0, 30), "cells": (4, 4)}
"""Eight values, of four cells each but the last one of two."""


@pytest.mark.parametrize("format", ["png", "svg"])
def test_the_last_of_pooled_cells_is_as_long_as_what_it_stands_for(make_spec, format: str):
    spec = make_spec(values=EIGHT, **SHORT_LAST)
    content = render(spec, format)
    times = 300 / 72 if format == "png" else 8 * 96 / 72
    assert_crisp(spec, png(content) if format == "png" else svg_pixels(content, times), times, soft_edge=2)


@pytest.mark.parametrize("n", [1001, 1002])
def test_the_last_row_of_a_png_has_a_pixel_however_few_cells_it_stands_for(make_spec, n: int):
    n_values = -(-n // 10)
    values = np.zeros((n_values, n_values))
    values[-1] = 1.0
    shape = {"shape": (n, n), "rows": (0, n), "cols": (0, n), "cells": (10, 10)}
    spec = make_spec(values=values, options=FigureOptions(dpi=80), **shape)
    pixels, box = png(render(spec, "png")), lay_out(spec, fonts()).matrix
    column = pixels[:, round((box.left + box.width / 2) * 80 / 72)]
    yellow = lookup_table(spec.colormap)[255, :3]
    assert (np.abs(column.astype(int) - yellow).sum(1) < 100).any()  # under the frame, which half covers it


@needs_poppler
def test_the_last_of_pooled_cells_is_cut_in_a_pdf(make_spec, tmp_path):
    spec = make_spec(values=EIGHT, **SHORT_LAST)
    assert_crisp(spec, pdf_pixels(render(spec, "pdf"), tmp_path, 8 * 96), 8 * 96 / 72, soft_edge=2)


@needs_poppler
def test_cells_of_a_pdf_are_crisp_at_800_percent(make_spec, tmp_path):
    spec = make_spec(values=EIGHT)
    assert_crisp(spec, pdf_pixels(render(spec, "pdf"), tmp_path, 8 * 96), 8 * 96 / 72, soft_edge=2)


def test_neighbouring_cells_leave_no_seam_at_any_zoom(make_spec):
    spec = make_spec(values=np.full((8, 8), 0.5))
    content = render(spec, "svg")
    for times in (1.0, 1.7, 4.3):
        assert_no_seams(spec, svg_pixels(content, times), times)


@needs_poppler
def test_neighbouring_cells_of_a_pdf_leave_no_seam_at_any_zoom(make_spec, tmp_path):
    spec = make_spec(values=np.full((8, 8), 0.5))
    content = render(spec, "pdf")
    for dpi in (72, 123, 310):
        assert_no_seams(spec, pdf_pixels(content, tmp_path, dpi), dpi / 72)


def test_row_0_is_at_the_top_and_column_2_at_the_right(make_spec):
    spec = make_spec(values=np.array([[1, 2, 3], [4, 5, 6]]) / 6)
    assert_crisp(spec, png(render(spec, "png")), 300 / 72, soft_edge=0)


def test_a_png_too_coarse_for_its_cells_is_refused_and_says_how_fine_is_enough(make_spec):
    spec = make_spec(values=np.zeros((900, 900)), options=FigureOptions(width_mm=60, dpi=150))
    with pytest.raises(ExportError, match=r"900 x 900 cells: choose at least (\d+) dpi") as refusal:
        render(spec, "png")
    needed = re.search(r"least (\d+) dpi", str(refusal.value))
    assert needed
    render(replace(spec, options=FigureOptions(width_mm=60, dpi=int(needed[1]))), "png")


@pytest.mark.parametrize("format", ["pdf", "svg"])
def test_the_preview_of_a_figure_without_a_resolution_shows_every_cell_whatever_that_of_a_png(make_spec, format: str):
    values = np.random.default_rng(0).random((300, 300))
    spec = make_spec(values=values, options=FigureOptions(width_mm=60, dpi=72))
    shown = preview(spec, format)
    times = png(shown).shape[1] / (60 / 25.4 * 72)
    box = lay_out(spec, fonts()).matrix
    assert min(box.width, box.height) * times >= 299
    with pytest.raises(ExportError, match="too few pixels"):
        preview(spec, "png")


def test_the_preview_of_a_png_is_the_png(make_spec):
    spec = make_spec(values=EIGHT, options=FigureOptions(dpi=100))
    assert preview(spec, "png") == render(spec, "png")


def test_masked_cells_are_hatched_on_white_and_unlike_zero(make_spec):
    values, masked = np.zeros((2, 2)), np.array([[False, True], [False, False]])
    spec = make_spec(values=values, masked=masked)
    pixels, box = png(render(spec, "png")), lay_out(spec, fonts()).matrix
    middle_x, middle_y = round((box.left + box.width / 2) * 300 / 72), round((box.top + box.height / 2) * 300 / 72)
    right, top = round(box.right * 300 / 72), round(box.top * 300 / 72)
    hatched = pixels[top + 5 : middle_y - 5, middle_x + 5 : right - 5]
    is_paper = (hatched == 255).all(axis=2).mean()
    assert 0.5 < is_paper < 0.95
    zero = pixels[middle_y + 5 : middle_y + 40, middle_x + 5 : right - 5]
    assert (zero == lookup_table("viridis")[0, :3]).all()


def test_cells_not_computed_are_dotted(make_spec):
    values = np.array([[0.0, np.nan]])
    spec = make_spec(values=values)
    pixels, box = png(render(spec, "png")), lay_out(spec, fonts()).matrix
    dotted = pixels[
        round(box.top * 300 / 72) + 5 : round(box.bottom * 300 / 72) - 5,
        round((box.left + box.width / 2) * 300 / 72) + 5 : round(box.right * 300 / 72) - 5,
    ]
    assert 0.7 < (dotted == 255).all(axis=2).mean() < 0.99


# Text


def svg_texts(spec: FigureSpec) -> list[str]:
    root = ElementTree.fromstring(render(spec, "svg"))
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_labels_titles_scale_and_caption_of_an_svg_are_text(make_spec):
    texts = svg_texts(make_spec())
    assert {"the", "·cat", "·sat", "query (row)", "key (column)", "attention weight, linear", "masked"} <= set(texts)
    assert any(text.startswith("tiny-lm (GPT-2, F32") for text in texts)


def test_tokens_are_never_read_as_mathematics_or_markup(make_spec):
    tokens = ("$x_1$", "a_b^c", "100%", "#", "\\frac{1}{2}", "$", "<s>", "&amp;", "'\"")
    spec = make_spec(tokens, options=FigureOptions(width_mm=174))
    assert set(tokens) <= set(svg_texts(spec))
    for name in ("pdf", "png"):
        assert render(spec, name)


def test_a_character_that_no_font_has_is_spelled_as_its_code_and_reported(make_spec, monkeypatch):
    monkeypatch.setattr(fonts(), "_characters", fonts()._characters - {ord("中")})
    spec = make_spec(("a中b", "c"), options=FigureOptions(caption=False))
    assert "a\\u4e2db" in svg_texts(spec)
    assert unprintable(spec) == "中"


def test_any_token_can_be_drawn(make_spec):
    tokens = ("\U0001f642", "中文", "שלום", "e\u0301", "\x00", "\u2028", "\u200d", "\ufffd", "", "❤\ufe0f")
    for name in FIGURE_FORMATS:
        assert render(make_spec(tokens), name)


def test_fonts_of_a_pdf_are_embedded_as_outlines_that_editors_keep_as_text(make_spec):
    content = render(make_spec(), "pdf")
    assert b"/CIDFontType2" in content
    assert b"/Type3" not in content


# What a file says about itself


def test_the_same_figure_makes_the_same_bytes(make_spec):
    for name in FIGURE_FORMATS:
        assert render(make_spec(), name) == render(make_spec(), name)


def test_a_figure_does_not_depend_on_the_persons_matplotlib_settings(make_spec, monkeypatch):
    before = {name: render(make_spec(), name) for name in FIGURE_FORMATS}
    strange: dict[Any, Any] = {
        "axes.linewidth": 9,
        "svg.fonttype": "path",
        "savefig.bbox": "tight",
        "image.origin": "lower",
        "text.usetex": True,
    }
    with matplotlib.rc_context(strange):
        assert {name: render(make_spec(), name) for name in FIGURE_FORMATS} == before
        assert matplotlib.rcParams["axes.linewidth"] == 9


def test_files_carry_title_and_creator_but_no_date_user_or_path(make_spec):
    for name in FIGURE_FORMATS:
        content = render(make_spec(), name)
        assert b"Transformer Explorer" in content
        assert b"tiny-lm: Attention weights, layer 1 head 2" in content
        for secret in (str(Path.home()).encode(), os.getcwd().encode(), b"/CreationDate", b"<dc:date>"):
            assert secret not in content, (name, secret)


def test_a_figure_is_saved_whole(make_spec, tmp_path):
    spec = make_spec()
    save_figure(spec, tmp_path / "figure.pdf", "pdf")
    assert (tmp_path / "figure.pdf").read_bytes() == render(spec, "pdf")
    assert os.listdir(tmp_path) == ["figure.pdf"]


def test_the_colour_map_chosen_wins_over_the_one_on_screen(make_spec):
    spec = make_spec(values=EIGHT, options=FigureOptions(colormap="grey"))
    assert_crisp(spec, png(render(spec, "png")), 300 / 72, soft_edge=0)
    assert spec.colormap == "grey"
