"""What the tensor browser asks for, and when."""

from __future__ import annotations

from dataclasses import replace

from explorer.state.app_state import AppState
from explorer.state.moves import pick_head
from explorer.state.source import Source
from explorer.state.tensor_moves import pick_head_part, pick_tensor, set_pooling, set_tensor_port
from explorer.state.tensor_queries import spectrum_query, tensor_list_query, tensor_part_query, tensor_query
from explorer.state.tensors import HeadCut, TensorPort
from tests.explorer.states import SOURCE, model_info, opened, traced_state


def chosen(name: str = "wte.weight") -> AppState:
    return pick_tensor(name)(traced_state())


def test_the_list_is_asked_for_as_soon_as_the_checkpoint_is_known_even_if_nothing_can_run():
    assert tensor_list_query(AppState(source=SOURCE)) is None
    refused = AppState(source=SOURCE, model=opened(info=model_info(refusal="quantised", sites=())))
    assert tensor_list_query(refused) is not None
    query = tensor_query(pick_tensor("scales")(refused))
    assert query is not None and query.subject == "scales" and query.lane == "io"


def test_a_tensor_of_another_checkpoint_is_not_asked_for():
    other = Source(path=SOURCE.path, opening=1)
    state = replace(chosen(), source=other, model=opened(source=other))
    assert tensor_query(state) is None and spectrum_query(state) is None


def test_a_part_of_a_head_follows_the_head_that_every_view_shares():
    state = pick_head_part("qk")(chosen())
    for layer, head in ((0, 0), (1, 3)):
        query = tensor_query(pick_head(layer, head)(state))
        assert query is not None
        assert query.subject == HeadCut(site="decoder.self", layer=layer, head=head, part="qk")
    back = tensor_query(pick_head_part(None)(state))
    assert back is not None and back.subject == "wte.weight"
    picked = tensor_query(pick_tensor("wpe.weight")(state))
    assert picked is not None and picked.subject == "wpe.weight"


def test_a_checkpoint_without_a_model_has_no_heads_to_cut():
    refused = traced_state(model=opened(info=model_info(refusal="quantised")))
    assert tensor_query(pick_head_part("query")(pick_tensor("scales")(refused))) is None


def test_a_closer_part_is_asked_for_while_it_is_of_the_tensor_on_screen():
    port = TensorPort(subject="wte.weight", rows=(0, 5), cols=(2, 9), size=(50, 70))
    query = tensor_part_query(set_pooling("mean")(set_tensor_port(port)(chosen())))
    assert query is not None
    assert (query.rows, query.cols, query.size, query.pooling) == ((0, 5), (2, 9), (50, 70), "mean")
    assert tensor_part_query(chosen()) is None
    assert tensor_part_query(set_tensor_port(port)(chosen("wpe.weight"))) is None
