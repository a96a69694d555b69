"""Local window attention costs what it says: arithmetic and memory linear in length; and it is exact."""

from dataclasses import replace

import pytest
import torch

from core_model.config import AlibiPositions, AttentionSpec, MaskSpec, multi_head
from core_model.nn.attend import attend
from core_model.nn.attention import Attention
from core_model.nn.scores import HeadInputs
from tests.core_model.attention_cases import AttentionCase
from tests.core_model.counting import Watch

WINDOWS = [
    MaskSpec(causal=True, window=64),
    MaskSpec(window=64),
    MaskSpec(causal=True, window=64, n_global=4),
    MaskSpec(window=64, n_global=4),
    MaskSpec(causal=True, window=64, n_prefix=4),
]
KINDS = {"fused": {}, "capped": {"soft_cap": 5.0}, "alibi": {"position": AlibiPositions()}}


def watched(spec: AttentionSpec, n_tokens: int) -> Watch:
    """What attention over n tokens does."""
    q_BHND, k_BKMD, v_BKMD = torch.randn(3, 1, spec.n_heads, n_tokens, spec.head_size)
    slopes_H = torch.ones(spec.n_heads) if spec.position else None
    heads = HeadInputs(spec=spec, q_BHND=q_BHND, k_BKMD=k_BKMD, bias_weights=slopes_H)
    with Watch() as watch, torch.inference_mode():
        attend(heads, v_BKMD, want_logsumexp=True)
    return watch


@pytest.mark.parametrize("mask", WINDOWS, ids=lambda mask: mask.label)
@pytest.mark.parametrize("kind", KINDS)
def test_work_grows_linearly_with_length(mask, kind):
    spec = multi_head(4, 2, mask=mask, **KINDS[kind])
    work = {n: watched(spec, n).n_products for n in (2048, 4096, 8192)}
    assert work[8192] - work[4096] <= 2.1 * (work[4096] - work[2048])
    assert work[8192] < 0.1 * 2 * 8192**2


@pytest.mark.parametrize("mask", [MaskSpec(), MaskSpec(causal=True)], ids=lambda mask: mask.label)
def test_the_same_count_grows_quadratically_without_a_window(mask):
    spec = multi_head(4, 2, mask=mask)
    assert watched(spec, 2048).n_products == 4 * watched(spec, 1024).n_products


@pytest.mark.parametrize("kind", KINDS)
def test_memory_of_a_block_does_not_grow_with_window_and_heads(kind):
    """A window as long as the text must not bring all of its scores back at once."""
    spec = multi_head(16, 16, mask=MaskSpec(causal=True, window=1024), **KINDS[kind])
    assert watched(spec, 2048).largest <= 1 << 23


@pytest.mark.parametrize("mask", WINDOWS, ids=lambda mask: mask.label)
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_600_tokens_equal_the_whole_masked_matrix(mask, kind):
    spec = replace(multi_head(10, 2, mask=mask), **KINDS[kind])
    case = AttentionCase(spec=spec, seed=1, n_batch=1, n_tokens=600, first_query=0, padding=None)
    torch.testing.assert_close(case.ran[0].double(), case.dense.output_BNC, atol=5e-5, rtol=1e-4)
    if kind != "capped":
        logsumexp_BHN = case.ran[1].logsumexp_BHN
        assert logsumexp_BHN is not None
        torch.testing.assert_close(logsumexp_BHN.double(), case.dense.logsumexp_BHN, atol=5e-5, rtol=1e-5)


def test_a_window_is_trained_through_its_blocks():
    attention = Attention(multi_head(8, 2, mask=MaskSpec(causal=True, window=3)), 8)
    x_BNC = torch.randn(1, 600, 8, generator=torch.Generator().manual_seed(0)).requires_grad_()
    attention(x_BNC)[0, 500].sum().backward()
    assert x_BNC.grad is not None
    reached = x_BNC.grad[0].abs().sum(-1).nonzero().flatten().tolist()
    assert reached == [498, 499, 500]
