from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core_model.config import MaskSpec, multi_head
from core_model.results import CellFacts, Fact, Origin, RunInfo
from explorer.state.answers import HeadsAnswer, InspectorAnswer
from explorer.state.app_state import AppState, Display
from explorer.viewmodels.facts import FactRow, FactSheet
from explorer.viewmodels.heads import heads_picture
from explorer.viewmodels.inspector import inspector_sheet
from explorer.viewmodels.model_card import health, model_card
from explorer.viewmodels.search import best_matches
from explorer.viewmodels.sites import site_name
from explorer.viewmodels.sizes import bytes_text, count_text, number_text, weight_text
from tests.explorer.states import model_info, opened, traced_state

CAUSAL = multi_head(64, 4, mask=MaskSpec(causal=True))


def rows(sheet: FactSheet) -> dict[str, FactRow]:
    return {row.name: row for section in sheet.sections for row in section.rows if row.name}


def cell(**changes: object) -> CellFacts:
    facts = CellFacts(query=2, key=1, weight=0.83123, score=4.2149, rank=1, masked=False, row_entropy=0.5)
    return replace(facts, **changes)


def inspector(facts: CellFacts | None) -> dict[str, FactRow]:
    answer = InspectorAnswer(layer=1, head=2, attention=CAUSAL, cell=facts, query_text=" mat", key_text=" sat")
    return rows(inspector_sheet(answer, traced_state()))


def test_the_inspector_reads_weight_rank_score_and_entropy() -> None:
    shown = inspector(cell())
    assert (shown["query 2"].value, shown["key 1"].value) == (" mat", " sat")
    assert shown["weight"].value == "0.8312"
    assert shown["rank"].value == "1 in its row"
    assert shown["score"].value == "4.215"
    assert shown["row entropy"].value == "0.50 nat"


def test_a_weight_that_is_no_number_has_no_rank() -> None:
    assert inspector(cell(weight=float("nan"), rank=None))["rank"].value == "\u2013"


def test_a_masked_cell_has_no_weight_score_or_rank() -> None:
    shown = inspector(cell(masked=True, score=None, weight=0.0))
    assert [shown[name].value for name in ("weight", "score", "rank")] == ["masked", "\u2013", "\u2013"]


def test_the_head_is_described_without_a_cell() -> None:
    shown = inspector(None)
    assert shown["mask"].value == "causal"
    assert shown["scale"].value == "0.25"
    assert shown["weight"].value == "\u2013"


def test_the_similarity_of_text_and_picture_is_said_where_there_is_one() -> None:
    answer = InspectorAnswer(layer=0, head=0, attention=CAUSAL, similarity=21.87654)
    assert rows(inspector_sheet(answer, traced_state()))["similarity"].value == "21.877"
    assert "similarity" not in inspector(None)


def test_the_rows_of_the_inspector_keep_their_places() -> None:
    shapes = {
        tuple(len(section.rows) for section in inspector_sheet(one, traced_state()).sections)
        for one in (
            InspectorAnswer(layer=1, head=2, attention=CAUSAL, cell=facts)
            for facts in (None, cell(), cell(masked=True, score=None))
        )
    }
    assert len(shapes) == 1


def test_a_model_trained_here_is_called_an_own_run() -> None:
    shown = rows(model_card(opened(info=model_info(family="native", architecture=None)), traced_state()))
    assert shown["family"].value == "own run"
    assert "architecture" not in shown and "trained" not in shown


@pytest.mark.parametrize(
    ("max_length", "origin", "told"),
    [
        (64, "stated", "at most 64 tokens"),
        (None, "stated", "of any length, stated for 8192 tokens"),
        (None, "inferred", "of any length"),
    ],
)
def test_the_card_says_of_the_input_what_the_facts_do(max_length: int | None, origin: Origin, told: str) -> None:
    facts = (Fact(name="context length", value="8192", origin=origin),)
    info = model_info(max_length=max_length, facts=facts)
    assert rows(model_card(opened(info=info), traced_state()))["input"].value == told


def test_the_card_of_a_run_says_how_far_it_came() -> None:
    info = model_info(family="native", run=RunInfo(step=400, n_steps=2000))
    assert rows(model_card(opened(info=info), traced_state()))["trained"].value == "step 400 of 2000"


def test_a_shared_key_head_names_the_heads_that_share_it() -> None:
    attention = multi_head(64, 8, n_key_heads=2)
    answer = InspectorAnswer(layer=0, head=5, attention=attention)
    assert rows(inspector_sheet(answer, traced_state()))["key head"].value == "1, shared by heads 4 to 7"


def test_the_card_marks_what_was_inferred_and_what_is_unknown() -> None:
    shown = rows(model_card(opened(info=model_info(architecture=None)), traced_state()))
    assert shown["vocabulary"].mark == ""
    assert shown["heads"].mark == "inferred"
    assert shown["architecture"].mark == "unknown"
    assert shown["header sha256"].value == "ab" * 32


def test_the_card_lists_missing_weights_by_name_and_counts_the_rest() -> None:
    info = model_info(missing=tuple(f"h.{i}.weight" for i in range(50)))
    section = next(s for s in model_card(opened(info=info), traced_state()).sections if s.title == "Missing weights")
    assert section.rows[0].value == "h.0.weight"
    assert section.rows[-1].value == "and 10 more"
    assert all(row.mark == "error" for row in section.rows)


@pytest.mark.parametrize(
    ("changes", "mark"),
    [
        ({}, "ok"),
        ({"warnings": ("w",)}, "warning"),
        ({"unexpected": ("x",)}, "warning"),
        ({"missing": ("m",), "warnings": ("w",)}, "error"),
        ({"misshaped": ("m",)}, "error"),
        ({"refusal": "Mamba has no attention"}, "error"),
    ],
)
def test_health_is_that_of_the_gravest_finding(changes: dict[str, object], mark: str) -> None:
    assert health(model_info(**changes))[0] == mark


def test_thumbnails_follow_the_scale_of_the_matrix() -> None:
    thumbnails = np.full((1, 1, 2, 2), 0.01, dtype=np.float32)
    thumbnails[0, 0, :, 0] = [1.0, 0.5]
    thumbnails[0, 0, 0, 1] = np.nan
    answer = HeadsAnswer(site="decoder.self", thumbnails=thumbnails, shape=(2, 2))
    log = heads_picture(answer, traced_state(display=Display(scale="log")))
    assert log.thumbnails[0, 0, 1, 1] == pytest.approx(-2.0)
    assert np.isnan(log.thumbnails[0, 0, 0, 1])
    shares = heads_picture(answer, traced_state(display=Display(scale="row_max")))
    assert shares.thumbnails[0, 0, 1].tolist() == pytest.approx([1.0, 0.02])
    assert np.isnan(shares.thumbnails[0, 0, 0, 1])
    rest = heads_picture(answer, traced_state(display=Display(scale="sink_excluded")))
    assert rest.levels == (0.0, pytest.approx(0.01))


@pytest.mark.parametrize(("n", "text"), [(7, "7"), (12_345, "12.3 thousand"), (124_439_808, "124 million")])
def test_counts_are_said_to_three_digits(n: int, text: str) -> None:
    assert count_text(n) == text


@pytest.mark.parametrize(
    ("n", "text"), [(512, "512 B"), (1536, "1.5 KiB"), (548_105_171, "523 MiB"), (1 << 40, "1 TiB")]
)
def test_bytes_are_said_to_three_digits(n: int, text: str) -> None:
    assert bytes_text(n) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.027361, "0.02736"),
        (-2.06912, "-2.069"),
        (9999.0, "9999"),
        (65_536.0, "65\u2009536"),
        (1_234_567.0, "1\u2009234\u2009567"),
        (1.5e-6, "1.5e-6"),
        (float("nan"), "\u2013"),
    ],
)
def test_measured_numbers_are_said_to_four_digits(value: float, text: str) -> None:
    assert number_text(value) == text


def test_sites_are_said_in_words() -> None:
    assert site_name("decoder.self") == "Decoder self-attention"
    assert site_name("decoder.cross") == "Cross-attention"


def test_letters_find_a_command_by_its_beginning_first() -> None:
    names = ["Zoom out View", "Open file… File", "Next head Model", "Log Scale View"]
    assert best_matches("open", names) == [1]
    assert best_matches("view zoom", names) == [0]
    assert best_matches("nhd", names) == [2]
    assert best_matches("", names) == [0, 1, 2, 3]
    assert best_matches("xyz", names) == []


@pytest.mark.parametrize(
    ("shape", "spoilt", "note"),
    [
        ((2, 2), (), "exact cells"),
        ((2, 3), (), "largest weight under each pixel"),
        ((2, 2), (0, 1), "exact cells; not a number in layer 0, 1"),
    ],
)
def test_the_note_of_the_heads_comes_from_their_answer_alone(
    shape: tuple[int, int], spoilt: tuple[int, ...], note: str
) -> None:
    answer = HeadsAnswer(
        site="decoder.self", thumbnails=np.zeros((2, 1, 2, 2), np.float32), shape=shape, not_numbers=spoilt
    )
    assert heads_picture(answer, AppState()).note == note


@pytest.mark.parametrize(
    ("weight", "text"), [(0.83121, "0.8312"), (1.0, "1.0000"), (3.24e-5, "3.2e-5"), (9.96e-21, "1e-20"), (0.0, "0")]
)
def test_a_small_weight_is_not_said_to_be_zero(weight: float, text: str) -> None:
    assert weight_text(weight) == text
