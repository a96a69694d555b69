from dataclasses import fields
from pathlib import Path

import pytest

from core_model.errors import ConfigError
from core_model.nn.initialization import SCHEMES
from core_model.training.precision import precisions
from core_model.training.settings import INITIALIZATIONS, PRECISIONS, TrainingSettings, problems


def test_defaults_have_no_problems():
    assert problems({}) == {}
    TrainingSettings()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("task", "translate"),
        ("d_model", 0),
        ("d_model", 64.5),
        ("n_layers", True),
        ("d_hidden", "wide"),
        ("norm", "middle"),
        ("positions", "spiral"),
        ("dropout", 1.0),
        ("initialization", "zeros"),
        ("steps", 0),
        ("batch", 0),
        ("length", 3),
        ("schedule", "step"),
        ("warmup", -1),
        ("peak_learning_rate", 0.0),
        ("peak_learning_rate", float("nan")),
        ("betas", (0.9, 1.0)),
        ("eps", 0.0),
        ("weight_decay", -0.1),
        ("clip", 0.0),
        ("precision", "fp8"),
        ("threads", 0),
        ("seed", -1),
        ("watch_every", 0),
        ("save_every", 0),
    ],
)
def test_a_wrong_value_is_reported_at_its_field_with_the_value(field, value):
    found = problems({field: value})
    assert list(found) == [field]
    assert found[field].startswith(f"{field} is {value!r}: ")
    with pytest.raises(ConfigError, match=rf"^{field} is"):
        TrainingSettings(**{field: value})


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"task": "language_model"}, "text"),
        ({"d_model": 64, "n_heads": 5}, "n_heads"),
        ({"d_model": 60, "n_heads": 4, "positions": "rotary"}, "positions"),
        ({"steps": 100, "warmup": 101}, "warmup"),
        ({"schedule": "linear", "peak_learning_rate": None}, "peak_learning_rate"),
    ],
)
def test_values_that_do_not_go_together_are_reported_at_one_field(values, field):
    assert list(problems(values)) == [field]


def test_several_wrong_fields_are_all_reported_at_once():
    found = problems({"d_model": "x", "n_heads": 0, "steps": None, "warmup": 5})
    assert set(found) == {"d_model", "n_heads", "steps"}


def test_every_field_with_a_choice_or_a_number_is_checked():
    unchecked = {field.name for field in fields(TrainingSettings)} - {"text", "device"}
    assert set(problems(dict.fromkeys(unchecked, "?"))) == unchecked


def test_schemes_and_precisions_are_those_that_exist():
    assert tuple(INITIALIZATIONS) == SCHEMES
    import torch

    assert set(precisions(torch.device("cpu"))) <= set(PRECISIONS)


def test_article_peak_follows_width_and_warmup():
    settings = TrainingSettings(d_model=512, n_heads=8, steps=10_000, warmup=4000, peak_learning_rate=None)
    assert settings.learning_rate(4000) == pytest.approx((512 * 4000) ** -0.5)


def test_language_model_with_a_text_has_no_problem():
    assert problems({"task": "language_model", "text": Path("any.txt")}) == {}
