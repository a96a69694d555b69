"""FlexAttention in its unfused form on a CPU, against attention by its definition; and what happens without a compiler.

The compiled kernel needs a GPU: `python -m tests.bench` measures local windows with it where there is one.
"""

import logging

import pytest
import torch
from torch.nn.attention import flex_attention as library

from core_model.config import AlibiPositions, AttentionSpec, MaskSpec, multi_head
from core_model.nn import flex
from core_model.nn.attend import attend
from core_model.nn.scores import HeadInputs
from tests.core_model.dense import visible_matrix

MASKS = [
    MaskSpec(causal=True, window=100),
    MaskSpec(causal=True, window=1),
    MaskSpec(window=70),
    MaskSpec(causal=True, window=60, n_global=3),
    MaskSpec(window=60, n_global=130),
    MaskSpec(causal=True, n_prefix=150),
    MaskSpec(causal=True, window=40, n_prefix=5),
    MaskSpec(window=40, n_global=2, n_prefix=9),
    MaskSpec(causal=True),
    MaskSpec(),
]


@pytest.fixture(autouse=True)
def unfused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library's own switch for running its function as it is, without its warning."""
    monkeypatch.setattr(library, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)


def a_case(
    mask: MaskSpec, n_queries: int, n_keys: int, *, query_start: int = 0, soft_cap: float | None = None
) -> tuple[HeadInputs, torch.Tensor]:
    """Six query heads over two key heads of 8 dimensions, and values."""
    spec = AttentionSpec(n_heads=6, n_key_heads=2, head_size=8, scale=0.6, mask=mask, soft_cap=soft_cap)
    generator = torch.Generator().manual_seed(n_queries)
    q_BHND = torch.randn(1, 6, n_queries, 8, generator=generator)
    k_BKMD, v_BKMD = torch.randn(2, 1, 2, n_keys, 8, generator=generator)
    return HeadInputs(spec=spec, q_BHND=q_BHND, k_BKMD=k_BKMD, query_start=query_start), v_BKMD


def assert_is_attention(heads: HeadInputs, v_BKMD: torch.Tensor, out: torch.Tensor, logsumexp: torch.Tensor) -> None:
    """The definition, in float64 on the whole matrix."""
    spec = heads.spec
    k_BHMD, v_BHMD = (x.double().repeat_interleave(3, dim=1) for x in (heads.k_BKMD, v_BKMD))
    s_BHNM = heads.q_BHND.double() @ k_BHMD.transpose(-1, -2) * spec.scale
    if spec.soft_cap is not None:
        s_BHNM = spec.soft_cap * torch.tanh(s_BHNM / spec.soft_cap)
    queries = range(heads.query_start, heads.query_start + heads.n_queries)
    s_BHNM = s_BHNM.masked_fill(~visible_matrix(spec.mask, queries, range(heads.n_keys)), float("-inf"))
    torch.testing.assert_close(out.double(), s_BHNM.softmax(-1) @ v_BHMD, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(logsumexp.double(), s_BHNM.logsumexp(-1), atol=3e-6, rtol=1e-6)


@pytest.mark.parametrize("soft_cap", [None, 2.0])
@pytest.mark.parametrize("mask", MASKS, ids=lambda mask: mask.label)
def test_it_gives_the_output_and_log_sum_exp_of_the_definition(mask, soft_cap):
    heads, v_BKMD = a_case(mask, 301, 301, soft_cap=soft_cap)
    with torch.inference_mode():
        assert_is_attention(heads, v_BKMD, *flex.attend_flex(heads, v_BKMD, library.flex_attention))


def test_queries_that_begin_within_the_text_see_the_keys_of_their_positions():
    heads, v_BKMD = a_case(MaskSpec(causal=True, window=50, n_global=2), 37, 300, query_start=263)
    with torch.inference_mode():
        assert_is_attention(heads, v_BKMD, *flex.attend_flex(heads, v_BKMD, library.flex_attention))


@pytest.mark.parametrize(("n_queries", "start"), [(640, 0), (700, 0), (100, 0), (60, 640)])
@pytest.mark.parametrize("mask", MASKS, ids=lambda mask: mask.label)
def test_blocks_of_the_mask_are_whole_or_in_part_where_the_predicate_is(mask, n_queries, start):
    """A block of which anything is seen must be there, and one called whole must be seen whole."""
    n_keys = start + n_queries
    found = flex.block_mask(mask, start, n_queries, n_keys, torch.device("cpu"))
    seen_NM = visible_matrix(mask, range(start, n_keys), range(n_keys))
    n_rows, n_cols = -(-n_queries // 128), -(-n_keys // 128)
    padded_NM = torch.zeros(n_rows * 128, n_cols * 128, dtype=torch.bool)
    padded_NM[:n_queries, :n_keys] = seen_NM
    blocks_IJ = padded_NM.view(n_rows, 128, n_cols, 128).transpose(1, 2)
    some_IJ, all_IJ = torch.zeros(2, n_rows, n_cols, dtype=torch.bool)
    assert found.full_kv_num_blocks is not None and found.full_kv_indices is not None
    for i in range(n_rows):
        some_IJ[i, found.kv_indices[0, 0, i, : found.kv_num_blocks[0, 0, i]].long()] = True
        all_IJ[i, found.full_kv_indices[0, 0, i, : found.full_kv_num_blocks[0, 0, i]].long()] = True
    is_seen_IJ, is_whole_IJ = blocks_IJ.flatten(2).any(-1), blocks_IJ.flatten(2).all(-1)
    assert not (some_IJ & all_IJ).any()
    assert ((some_IJ | all_IJ) >= is_seen_IJ).all()
    assert (all_IJ <= is_whole_IJ).all()
    if not (mask.n_global or mask.n_prefix):  # of these a block may be said to be seen in part
        assert torch.equal(all_IJ, is_whole_IJ)


def test_blocks_of_a_window_grow_linearly_with_length():
    n_blocks = {
        n: int(found.kv_num_blocks.sum()) + int(found.full_kv_num_blocks.sum())  # pyright: ignore[reportOptionalMemberAccess]
        for n in (4096, 8192)
        if (found := flex.block_mask(MaskSpec(causal=True, window=256), 0, n, n, torch.device("cpu")))
    }
    assert n_blocks[8192] <= 2.05 * n_blocks[4096]
    assert n_blocks[8192] <= 4 * 8192 / 128


def test_it_is_not_asked_on_a_cpu():
    heads, _ = a_case(MaskSpec(causal=True, window=9), 5000, 5000)
    assert not flex.takes(heads)


class OnCuda:
    """What `takes` asks of queries, as if they were on a GPU."""

    device, dtype = torch.device("cuda"), torch.float32

    def __init__(self, n: int) -> None:
        self.shape = (1, 2, n, 4)


@pytest.mark.parametrize(
    ("n_queries", "options", "is_taken"),
    [
        (4096, {}, True),
        (4096, {"soft_cap": 2.0}, True),
        (1, {}, False),
        (4096, {"sinks": True}, False),
        (4096, {"normalizer": "relu"}, False),
        (4096, {"position": AlibiPositions()}, False),
    ],
    ids=str,
)
def test_on_cuda_it_takes_long_masked_attention_with_nothing_added(n_queries, options, is_taken):
    spec = multi_head(8, 2, mask=MaskSpec(causal=True, window=9), **options)
    heads = HeadInputs(
        spec=spec,
        q_BHND=OnCuda(n_queries),  # pyright: ignore[reportArgumentType]
        k_BKMD=torch.empty(1, 2, 4096, 4),
        bias_weights=torch.ones(2) if spec.position else None,
        sinks_H=torch.ones(2) if spec.sinks else None,
    )
    assert flex.takes(heads) == is_taken


def test_attention_goes_through_it_where_it_is_taken(monkeypatch):
    heads, v_BKMD = a_case(MaskSpec(causal=True, window=50), 200, 200, soft_cap=3.0)
    monkeypatch.setattr(flex, "takes", lambda heads: True)
    monkeypatch.setattr(flex, "_compiled_kernel", lambda: library.flex_attention)
    with torch.inference_mode():
        out, logsumexp = attend(heads, v_BKMD, want_logsumexp=True)
    assert logsumexp is not None  # the blocks of rows have none of capped scores
    assert_is_attention(heads, v_BKMD, out, logsumexp)


def test_memory_that_runs_out_is_no_missing_compiler(monkeypatch):
    def too_much(*given: object, **named: object) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(flex, "_refused", set())
    monkeypatch.setattr(flex, "_compiled_kernel", lambda: too_much)
    with pytest.raises(torch.OutOfMemoryError):
        flex.attend_compiled(*a_case(MaskSpec(window=8), 40, 40))
    assert not flex._refused


def test_without_a_compiler_blocks_of_rows_do_it_and_the_reason_is_logged_once(monkeypatch, caplog):
    def no_compiler(*given: object, **named: object) -> None:
        raise RuntimeError("no C compiler was found")

    monkeypatch.setattr(flex, "_refused", set())
    monkeypatch.setattr(flex, "takes", lambda heads: flex._kind(heads) not in flex._refused)
    monkeypatch.setattr(flex, "_compiled_kernel", lambda: no_compiler)
    heads, v_BKMD = a_case(MaskSpec(causal=True, window=50), 200, 200)
    with caplog.at_level(logging.WARNING), torch.inference_mode():
        results = [attend(heads, v_BKMD, want_logsumexp=True) for _ in range(3)]
    for out, logsumexp in results:
        assert logsumexp is not None
        assert_is_attention(heads, v_BKMD, out, logsumexp)
    assert [record.getMessage() for record in caplog.records] == [
        "FlexAttention does not compile here, so windows are computed in blocks of rows: no C compiler was found"
    ]
