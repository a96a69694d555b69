import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core_model.training.schedules import SCHEDULES
from core_model.training.settings import TrainingSettings
from explorer.state.answers import DeviceOption, TrainingOptions
from explorer.state.app_state import Display
from explorer.state.training import TrainingDraft, TrainingFacts, WatchedHead
from explorer.viewmodels.schedule import peak_rate, sampled_updates, schedule_picture, schedule_problem
from explorer.viewmodels.training import (
    accuracy_picture,
    loss_picture,
    norm_picture,
    probe_heads_picture,
    probe_picture,
    rate_picture,
    saved_line,
    scale_picture,
    settled,
    stepped,
    training_line,
)
from explorer.viewmodels.training_form import FORM, device_choices, field_errors, field_hints, precision_choices
from tests.explorer.training_events import SETTINGS, probe, snapshot

DEFAULTS = TrainingDraft().values


def test_loss_has_one_point_an_update():
    series = loss_picture(snapshot(3)).series[0]
    assert (series.x.tolist(), series.y.tolist()) == ([1, 2, 3], [1, 1 / 2, 1 / 3])


def test_accuracy_has_points_where_it_was_measured():
    series = accuracy_picture(snapshot(3)).series[0]
    assert (series.x.tolist(), series.y.tolist()) == ([3], [0.25])


def test_learning_rate_lies_on_the_schedule_and_marks_the_step():
    picture = rate_picture(snapshot(3))
    ahead, used = picture.series
    assert ahead.x[-1] == SETTINGS.steps and picture.marker == 3
    assert used.y.tolist() == [SETTINGS.learning_rate(step) for step in (1, 2, 3)]


def test_a_skipped_update_is_a_gap_in_the_gradient_norm():
    series = norm_picture(snapshot(3, grad_norm=math.inf)).series[0]
    assert np.isnan(series.y[-1]) and series.y[0] == 2.0


def test_loss_scale_is_shown_only_where_something_is_scaled():
    assert scale_picture(snapshot(2)) is None
    picture = scale_picture(snapshot(2, loss_scale=65536.0))
    assert picture is not None and picture.log_y and picture.series[0].y.tolist() == [65536.0] * 2


def test_without_a_choice_the_last_site_is_watched():
    assert settled(WatchedHead(), probe()) == WatchedHead(site="decoder.cross", layer=0, head=0)


def test_a_watched_head_the_model_lacks_gives_way_to_the_nearest():
    assert settled(WatchedHead(site="encoder.self", layer=9, head=9), probe(n_layers=2, n_heads=3)) == WatchedHead(
        site="decoder.cross", layer=1, head=2
    )


@pytest.mark.parametrize(
    ("step", "there"), [((1, 0), (1, 1)), ((0, 1), (0, 2)), ((-1, 0), (0, 1)), ((0, 9), (0, 2)), ((0, -9), (0, 0))]
)
def test_stepping_through_the_watched_heads_stops_at_the_ends(step: tuple[int, int], there: tuple[int, int]):
    now = WatchedHead(site="decoder.self", layer=0, head=1)
    found = stepped(now, probe(n_layers=2, n_heads=3), *step)
    assert (found.site, found.layer, found.head) == ("decoder.self", *there)


def test_probe_picture_shows_the_exact_weights_with_both_axes_named():
    seen = probe()
    picture = probe_picture(seen, WatchedHead(site="decoder.cross", layer=1, head=2), Display())
    np.testing.assert_array_equal(picture.values, seen.sites["decoder.cross"].weights[1, 2])
    assert (picture.row_labels, picture.col_labels) == (tuple("abcd"), tuple("vwxyz"))
    assert picture.masked is None and "step 1" in picture.note


def test_probe_picture_of_a_causal_site_marks_what_is_masked():
    picture = probe_picture(probe(), WatchedHead(site="decoder.self"), Display(scale="log", colormap="magma"))
    assert picture.masked is not None and picture.masked[0].tolist() == [False, True, True, True]
    assert picture.colormap == "magma" and "log" in picture.scale_name


def test_heads_picture_shows_every_head_masked_cells_without_a_number():
    seen = probe()
    picture = probe_heads_picture(seen, WatchedHead(site="decoder.self"), Display())
    assert picture.thumbnails.shape == (2, 3, 4, 4)
    assert np.isnan(picture.thumbnails[0, 0, 0, 1])
    assert picture.thumbnails[1, 2, 3, 0] == seen.sites["decoder.self"].weights[1, 2, 3, 0]


def test_heads_picture_has_the_scale_of_the_matrix_beside_it():
    seen, watched = probe(), WatchedHead(site="decoder.self", layer=1, head=2)
    for scale in ("linear", "log", "row_max"):
        display = Display(scale=scale)
        heads, matrix = probe_heads_picture(seen, watched, display), probe_picture(seen, watched, display)
        shown = ~seen.sites["decoder.self"].masked
        np.testing.assert_allclose(heads.thumbnails[1, 2][shown], matrix.values[shown], rtol=1e-6)
        assert heads.levels == matrix.levels


def test_a_column_that_the_scale_leaves_out_is_not_called_uncomputed():
    picture = probe_picture(probe(), WatchedHead(site="decoder.self"), Display(scale="sink_excluded"))
    assert picture.missing is not None and picture.missing_name == "left out"


def test_heads_picture_of_a_wide_site_repeats_rows_to_a_square():
    seen = probe()
    picture = probe_heads_picture(seen, WatchedHead(site="decoder.cross"), Display())
    assert picture.thumbnails.shape == (2, 3, 5, 5)
    np.testing.assert_array_equal(picture.thumbnails[0, 0, -1], seen.sites["decoder.cross"].weights[0, 0, -1])


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (TrainingFacts(), "Nothing is training yet."),
        (TrainingFacts(phase="starting", settings=SETTINGS), "Starting: reverse"),
        (
            TrainingFacts(phase="running", settings=SETTINGS, n_threads=1),
            "Running: reverse, step 3 of 400, 1.5 s, 1 thread",
        ),
        (
            TrainingFacts(phase="paused", settings=SETTINGS, n_threads=2),
            "Paused: reverse, step 3 of 400, 1.5 s, 2 threads",
        ),
    ],
)
def test_line_says_phase_task_step_and_time(facts, words):
    seen = snapshot(3) if facts.phase in ("running", "paused", "finished") else None
    assert training_line(facts, seen).text == words


def test_line_of_a_failure_is_its_message():
    line = training_line(TrainingFacts(phase="failed", settings=SETTINGS, problem="The disk is full."), snapshot(3))
    assert (line.text, line.is_problem) == ("The disk is full.", True)


@pytest.mark.parametrize(("seconds", "words"), [(59.9, "59.9 s"), (75, "1 min 15 s"), (3720, "1 h 02 min")])
def test_time_is_given_in_the_units_people_use(seconds, words):
    line = training_line(TrainingFacts(phase="running", settings=SETTINGS), snapshot(3, seconds=seconds))
    assert line.text.endswith(words)


def test_saved_line_says_what_is_on_disk():
    assert saved_line(TrainingFacts()) == ""
    assert saved_line(TrainingFacts(run=Path("r"))) == "Not saved yet: r"
    running = TrainingFacts(phase="running", run=Path("r"), settings=TrainingSettings(save_every=300))
    assert saved_line(running) == "First save at step 300: r"
    assert saved_line(TrainingFacts(run=Path("r"), saved_step=7)) == "Saved to step 7: r"
    full = replace(running, saved_step=7, problem="The disk is full.")
    assert saved_line(full) == "The disk is full."
    assert saved_line(replace(full, phase="finished")) == "Saved to step 7: r"


def test_schedule_picture_has_every_schedule_at_one_peak_the_chosen_one_strong():
    picture = schedule_picture(DEFAULTS | {"schedule": "cosine", "peak_learning_rate": 0.5}, step=40)
    assert [series.name for series in picture.series] == [kind.label for kind in SCHEDULES.values()]
    assert all(series.y.max() == pytest.approx(0.5, rel=0.01) for series in picture.series)
    strong = max(picture.series, key=lambda series: series.width)
    assert strong.name == SCHEDULES["cosine"].label
    assert (picture.marker, picture.marker_label) == (40, "step 40")


def test_schedule_without_a_peak_is_the_articles():
    values = DEFAULTS | {"peak_learning_rate": None, "d_model": 512, "warmup": 4000, "steps": 4000}
    assert peak_rate(values) == pytest.approx(6.988e-4, rel=1e-3)
    assert schedule_picture(values).series[0].y[-1] == pytest.approx(6.988e-4, rel=1e-3)


def test_schedule_says_what_is_wrong_with_its_own_fields_only():
    assert schedule_problem(DEFAULTS | {"n_heads": 5}) == ""
    assert "warmup" in schedule_problem(DEFAULTS | {"steps": 10, "warmup": 11})


@pytest.mark.parametrize("n_updates", [1, 2, 600, 601, 1_000_000])
def test_sampled_updates_go_from_the_first_to_the_last_without_repeating(n_updates):
    updates = sampled_updates(n_updates)
    assert updates[0] == 1 and updates[-1] == n_updates
    assert len(updates) <= 600 and (np.diff(updates) > 0).all()


@pytest.mark.parametrize("marked", [1, 193, 1999, 2000])
def test_of_a_long_run_the_marked_update_is_among_those_that_are_drawn(marked):
    picture = schedule_picture(DEFAULTS | {"steps": 2000, "peak_learning_rate": 0.002, "warmup": 200}, step=marked)
    assert all(marked in series.x for series in picture.series)
    warming = next(series for series in picture.series if series.name == SCHEDULES["inverse_sqrt"].label)
    expected = 0.002 * min(marked / 200, math.sqrt(200 / marked))
    assert warming.y[warming.x == marked] == pytest.approx(expected)


def test_a_mark_outside_a_schedule_adds_no_update():
    assert sampled_updates(10, 11).tolist() == sampled_updates(10, 0).tolist() == sampled_updates(10).tolist()


def test_every_field_of_the_form_is_a_field_of_the_settings():
    names = [field.name for group in FORM for field in group.fields]
    assert set(names) <= set(DEFAULTS) and len(set(names)) == len(names)


def test_every_choice_of_the_form_can_be_trained():
    for field in (field for group in FORM for field in group.fields if field.kind == "choice"):
        for value, _ in field.choices:
            assert field.name not in TrainingDraft(changes=((field.name, value),)).problems


def test_errors_stand_at_their_fields_without_repeating_the_name():
    errors = field_errors(TrainingDraft(changes=(("n_heads", 5), ("task", "language_model"))))
    assert errors == {
        "n_heads": "Width, 64, must be a multiple of it",
        "text": "Language model learns from a text file, so choose one",
    }


def test_an_empty_peak_is_hinted_at_and_a_given_one_speaks_for_itself():
    assert "peak_learning_rate" not in field_hints(TrainingDraft())
    empty = TrainingDraft(changes=(("peak_learning_rate", None), ("d_model", 64), ("warmup", 400)))
    assert field_hints(empty)["peak_learning_rate"] == "peak 0.00625 after 400 updates"  # (64 x 400)^-0.5


def test_only_what_the_device_can_do_is_offered():
    options = TrainingOptions(
        devices=(
            DeviceOption(key="cpu", label="CPU, 2 cores", precisions=("fp32", "bf16", "fp16")),
            DeviceOption(key="mps", label="Apple GPU", precisions=("fp32",)),
        )
    )
    assert [value for value, _ in device_choices(options)] == ["cpu", "mps"]
    assert [value for value, _ in precision_choices(options, "mps")] == ["fp32"]


def test_draft_makes_the_settings_it_shows():
    draft = TrainingDraft(changes=(("steps", 10), ("warmup", 2)))
    assert draft.settings() == replace(TrainingSettings(), steps=10, warmup=2)
    assert draft.values["steps"] == 10 and draft.values["batch"] == TrainingSettings().batch
