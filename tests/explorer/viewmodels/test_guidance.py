from __future__ import annotations

import pytest

from explorer.state.app_state import AppState, InputKind, ModelInput
from explorer.state.moves import with_model
from explorer.state.queries import tokens_query
from explorer.viewmodels.guidance import first_steps
from tests.explorer.states import SOURCE, opened


@pytest.mark.parametrize("kind", ["pictures", "sound", "vectors"])
def test_a_model_that_reads_no_text_promises_no_text_field(kind: InputKind) -> None:
    state = with_model(opened(reads=kind, has_tokenizer=False))(AppState(source=SOURCE, inputs=ModelInput(text="5 17")))
    sentence, command = first_steps(state)
    assert f"reads {kind}, for which this window has no input yet" in sentence and command == "open_folder"
    assert state.inputs.text == "" and tokens_query(state) is None


def test_a_model_without_a_tokenizer_asks_for_ids() -> None:
    state = with_model(opened(has_tokenizer=False))(AppState(source=SOURCE))
    assert first_steps(state) == (
        "Type token ids, for example 5 17 2, and see what each head attends to.",
        "focus_text",
    )
