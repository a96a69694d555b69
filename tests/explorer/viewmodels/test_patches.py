from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core_model.results import PatchAttention
from core_model.tokenize import Patches
from core_model.tokenize.encoding import PROBE
from explorer.state.answers import PictureAnswer
from explorer.state.app_state import Display
from explorer.viewmodels.patches import patch_picture
from explorer.viewmodels.records import PatchPicture
from tests.explorer.states import encoding, traced_state

NAMES = ("class", "register 0", "register 1", *(f"patch {row},{column}" for row in range(2) for column in range(3)))
KEYS = Patches(**vars(encoding(*NAMES)))
WEIGHTS = np.array([[0.25, 0.0625, 0.0], [0.125, 0.0, 0.0625]], dtype=np.float32)
"""Half of the row."""
BEFORE = np.array([0.25, 0.125, 0.125], dtype=np.float32)
ANSWER = PictureAnswer(
    seen=np.zeros((8, 12, 3), dtype=np.uint8),
    attention=PatchAttention(query=7, place=(1, 1), weights=WEIGHTS, before=BEFORE),
    queries=KEYS,
    keys=KEYS,
)


def test_colours_end_at_the_largest_weight_of_a_patch_and_the_bar_says_it() -> None:
    picture = patch_picture(ANSWER, traced_state())
    assert (picture.levels, picture.ends, picture.scale_name) == ((0.0, 0.25), ("0", "0.25"), "weight, linear")
    np.testing.assert_array_equal(picture.values, WEIGHTS)


def test_the_logarithmic_scale_of_the_matrix_holds_here_too() -> None:
    picture = patch_picture(ANSWER, traced_state(display=Display(scale="log", colormap="magma")))
    assert picture.values[0, 0] == pytest.approx(np.log10(0.25)) and picture.values[0, 2] == -np.inf
    assert (picture.levels, picture.scale_name, picture.colormap) == ((-4.0, 0.0), "weight, log", "magma")


def test_it_says_whose_row_it_is_and_where_the_rest_of_the_row_lies() -> None:
    picture = patch_picture(ANSWER, traced_state())
    assert picture.title == "Where query 7, patch 1,1, looks"
    assert picture.note == "patches 0.5000, class 0.2500, register 0 0.1250, 1 more 0.1250"
    assert sum(float(part.rpartition(" ")[2]) for part in picture.note.split(", ")) == 1.0


def test_the_probe_that_pools_has_no_patch_and_patches_are_no_queries_of_its() -> None:
    attention = replace(ANSWER.attention, query=0, place=None)
    picture = patch_picture(replace(ANSWER, attention=attention, queries=PROBE), traced_state())
    assert picture.title == "Where query 0, probe, looks" and picture.place is None and not picture.asks


def test_a_row_that_is_no_number_is_drawn_without_an_end() -> None:
    attention = replace(ANSWER.attention, weights=np.full((2, 3), np.nan, dtype=np.float32))
    assert patch_picture(replace(ANSWER, attention=attention), traced_state()).levels == (0.0, 1.0)


@pytest.mark.parametrize(("index", "place"), [(0, None), (2, None), (3, (0, 0)), (5, (0, 2)), (8, (1, 2)), (9, None)])
def test_a_token_has_its_place_on_the_grid(index: int, place: tuple[int, int] | None) -> None:
    picture: PatchPicture = patch_picture(ANSWER, traced_state())
    assert picture.place_of(index) == place
