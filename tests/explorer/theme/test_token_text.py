"""Spaces and newlines are seen, and nothing else is changed."""

import pytest

from explorer.theme.token_text import Name, token_runs, token_text


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" cat", "\u00b7cat"),
        ("\n", "\u21b5"),
        ("a b", "a\u00b7b"),
        ("\t", "\u21e5"),
        ("", "\u2205"),
        ("\x00", "\\x00"),
        ("na\u00efve \u65e5\u672c", "na\u00efve\u00b7\u65e5\u672c"),
    ],
)
def test_signs_stand_for_what_cannot_be_seen(token, shown):
    assert token_text(token) == shown


def test_signs_are_dimmed_and_letters_are_not():
    assert token_runs(" the cat\n") == (
        ("\u00b7", True),
        ("the", False),
        ("\u00b7", True),
        ("cat", False),
        ("\u21b5", True),
    )


def test_a_name_is_no_token_and_keeps_its_spaces():
    assert token_text(Name("patch 3,5")) == "patch 3,5"
    assert token_text(Name("distillation"), 8) == "distill…"


def test_a_long_token_is_cut_to_the_limit():
    assert token_text("internationalization", 8) == "interna\u2026"
    assert token_text("national", 8) == "national"
