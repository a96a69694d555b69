"""Masks against the sentence that defines them, for single pairs of positions and for blocks of them."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from core_model.config import MaskSpec
from core_model.nn import masks
from tests.core_model.attention_cases import masks as any_mask
from tests.core_model.dense import may_see, visible_matrix

blocks = st.builds(lambda start, n: range(start, start + n), st.integers(0, 20), st.integers(1, 12))


@given(mask=any_mask, queries=blocks, keys=blocks)
def test_visible_is_the_predicate_of_every_pair(mask: MaskSpec, queries: range, keys: range):
    seen_NM = masks.visible(mask, torch.tensor(queries), torch.tensor(keys))
    assert torch.equal(seen_NM, visible_matrix(mask, queries, keys))


@settings(max_examples=400)
@given(mask=any_mask, queries=blocks, keys=blocks)
def test_coverage_says_all_or_none_only_where_it_is_so(mask: MaskSpec, queries: range, keys: range):
    seen_NM = visible_matrix(mask, queries, keys)
    said = masks.coverage(mask, queries, keys)
    if said == "all":
        assert seen_NM.all()
    if said == "none":
        assert not seen_NM.any()


def test_coverage_tells_blocks_of_the_causal_triangle_apart():
    causal = MaskSpec(causal=True)
    assert masks.coverage(causal, range(8, 12), range(0, 9)) == "all"
    assert masks.coverage(causal, range(8, 12), range(8, 12)) == "some"
    assert masks.coverage(causal, range(8, 12), range(12, 16)) == "none"
    assert masks.coverage(MaskSpec(), range(0, 2), range(0, 9)) == "all"


def test_coverage_drops_blocks_behind_a_window():
    assert masks.coverage(MaskSpec(causal=True, window=4), range(10, 12), range(0, 7)) == "none"
    assert masks.coverage(MaskSpec(window=4), range(10, 12), range(0, 6)) == "none"
    assert masks.coverage(MaskSpec(window=4), range(10, 12), range(16, 20)) == "none"
    assert masks.coverage(MaskSpec(window=4), range(10, 12), range(8, 14)) == "all"


@settings(max_examples=400)
@given(mask=any_mask, queries=blocks, keys=blocks)
def test_keys_said_to_be_seen_by_all_are_some_of_the_keys_and_seen_by_every_query(mask, queries, keys):
    seen = masks.seen_by_all(mask, queries, keys)
    assert keys.start <= seen.start <= seen.stop <= keys.stop
    assert not len(seen) or visible_matrix(mask, queries, seen).all()


@settings(max_examples=400)
@given(mask=any_mask.filter(lambda mask: not mask.n_prefix and not mask.n_global), queries=blocks, keys=blocks)
def test_where_only_distances_count_all_keys_that_every_query_sees_are_said(mask, queries, keys):
    seen_by_every_query = [key for key in keys if all(may_see(mask, query, key) for query in queries)]
    assert list(masks.seen_by_all(mask, queries, keys)) == seen_by_every_query


@settings(max_examples=400)
@given(mask=any_mask, queries=blocks, n_keys=st.integers(1, 40))
def test_key_spans_hold_every_visible_key_in_order_without_overlap(mask: MaskSpec, queries: range, n_keys: int):
    spans = masks.key_spans(mask, queries[0], queries[-1], n_keys)
    inside = [key for start, stop in spans for key in range(start, stop)]
    assert inside == sorted(set(inside))
    assert all(0 <= key < n_keys for key in inside)
    seen = {key for key in range(n_keys) for query in queries if may_see(mask, query, key)}
    assert seen <= set(inside)


@given(mask=any_mask.filter(lambda mask: mask.window is not None), start=st.integers(10, 900), n=st.integers(1, 50))
def test_key_spans_of_a_window_are_no_longer_than_window_and_block_and_always_seen_keys(mask, start, n):
    spans = masks.key_spans(mask, start, start + n - 1, 1000)
    reach = mask.window - 1 if mask.causal else 2 * mask.window
    assert sum(stop - first for first, stop in spans) <= n + reach + max(mask.n_global, mask.n_prefix)


def test_only_a_full_mask_hides_nothing():
    assert masks.hides_nothing(MaskSpec())
    assert masks.hides_nothing(MaskSpec(n_prefix=3, n_global=2))
    assert not masks.hides_nothing(MaskSpec(causal=True))
    assert not masks.hides_nothing(MaskSpec(window=4))
