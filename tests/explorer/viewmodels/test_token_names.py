from __future__ import annotations

from dataclasses import replace

import numpy as np

from core_model.results import HeatmapView
from core_model.tokenize import Encoding, Frames, Patches
from explorer.state.answers import MatrixAnswer
from explorer.theme.token_text import token_text
from explorer.viewmodels.attention import matrix_picture
from explorer.viewmodels.token_names import token_names
from tests.explorer.states import encoding, traced_state


def as_unit(unit: type[Encoding], *texts: str) -> Encoding:
    return unit(**vars(encoding(*texts)))


def test_a_token_shows_its_spaces_and_a_patch_does_not() -> None:
    assert [token_text(name) for name in token_names(encoding(" cat"))] == ["·cat"]
    assert [token_text(name) for name in token_names(as_unit(Patches, "patch 3,5"))] == ["patch 3,5"]


def test_the_axes_of_a_decoder_that_reads_a_sound_say_frames() -> None:
    view = HeatmapView(
        site="decoder.cross",
        layer=0,
        head=0,
        rows=(0, 1),
        cols=(0, 2),
        values=np.full((1, 2), 0.5, dtype=np.float32),
        masked=np.zeros((1, 2), dtype=bool),
        cells=(1, 1),
        reduce="max",
    )
    answer = MatrixAnswer(
        view=view, row_peaks=np.array([0.5]), queries=encoding("<s>"), keys=as_unit(Frames, "0.00 s", "0.02 s")
    )
    picture = matrix_picture(answer, traced_state())
    assert (picture.row_title, picture.col_title) == ("query: token the decoder reads", "key: frame the encoder reads")
    assert picture.col_labels == ("0.00 s", "0.02 s")
    words = matrix_picture(replace(answer, keys=encoding("a", "b")), traced_state())
    assert words.col_title == "key: token the encoder reads"
