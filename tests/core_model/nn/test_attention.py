"""The attention module against attention by its definition, torch's own layer, and the faults others reported.

Shape letters: B batch, N queries, M keys, H heads, K key heads, D head size, C model width.
"""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from torch import nn

from core_model.config import AlibiPositions, AttentionSpec, MaskSpec, multi_head
from core_model.nn.attend import attend
from core_model.nn.attention import Attention
from core_model.nn.forward_pass import Pass
from core_model.nn.scores import HeadInputs, normalize, scores
from core_model.trace.tap import CollectingTap
from tests.core_model.attention_cases import AttentionCase, attention_cases, fill
from tests.core_model.dense import dense_attention

CAUSAL = MaskSpec(causal=True)


def random_heads(spec: AttentionSpec, n_tokens: int, *, dtype: torch.dtype = torch.float32) -> HeadInputs:
    """Queries and keys of one example, large enough that attention is far from flat."""
    generator = torch.Generator().manual_seed(0)
    q_BHND = 1.5 * torch.randn(1, spec.n_heads, n_tokens, spec.head_size, generator=generator)
    k_BKMD = 1.5 * torch.randn(1, spec.n_key_heads, n_tokens, spec.head_size, generator=generator)
    return HeadInputs(spec=spec, q_BHND=q_BHND.to(dtype), k_BKMD=k_BKMD.to(dtype))


def recomputed(heads: HeadInputs) -> torch.Tensor:
    """The weights [B, H, N, M] of the definition that screens draw from."""
    return normalize(scores(heads, slice(0, heads.n_queries), [range(heads.n_keys)]), heads)


@settings(max_examples=1000)
@given(case=attention_cases())
def test_output_equals_attention_by_its_definition(case: AttentionCase):
    torch.testing.assert_close(case.ran[0].double(), case.dense.output_BNC, atol=1e-4, rtol=1e-4)


@settings(max_examples=100)
@given(case=attention_cases())
def test_the_log_sum_exp_that_comes_with_the_output_equals_its_definition(case: AttentionCase):
    logsumexp_BHN = case.ran[1].logsumexp_BHN
    if case.spec.normalizer == "relu":
        assert logsumexp_BHN is None
        return
    assert logsumexp_BHN is not None
    expected_BHN = case.dense.logsumexp_BHN
    sees_a_key_BHN = case.dense.visible_BNM.any(-1)[:, None].expand_as(expected_BHN)
    torch.testing.assert_close(
        logsumexp_BHN[sees_a_key_BHN].double(), expected_BHN[sees_a_key_BHN], atol=1e-4, rtol=1e-5
    )


@settings(max_examples=100)
@given(case=attention_cases())
def test_a_watched_pass_gives_what_an_unwatched_one_gives(case: AttentionCase):
    """A tap may have the kernel called in another way; it must not change what comes out."""
    watched_BNC = replace(case, first_query=0).ran[0]
    with torch.inference_mode():
        plain_BNC = case.attention(case.x, key_mask_BM=case.key_mask, shared=Pass(distance_RC=case.distances))
    torch.testing.assert_close(watched_BNC, plain_BNC, atol=2e-5, rtol=2e-5)


@pytest.mark.parametrize("mask", [MaskSpec(), CAUSAL])
@pytest.mark.parametrize("n_key_heads", [1, 2, 4])
def test_weights_recomputed_from_queries_and_keys_agree_with_the_fused_kernel(mask, n_key_heads):
    """Fused kernels return no weights; those recomputed agree below 5e-5 (transformers#31990, #38750)."""
    spec = AttentionSpec(n_heads=4, n_key_heads=n_key_heads, head_size=16, scale=0.25, mask=mask)
    heads = random_heads(spec, 100)
    v_BKMD = torch.randn(heads.k_BKMD.shape, generator=torch.Generator().manual_seed(1))
    expected_BHND = recomputed(heads) @ v_BKMD.repeat_interleave(4 // n_key_heads, dim=1)
    for want_logsumexp in (False, True):
        out_BHND, _ = attend(heads, v_BKMD, want_logsumexp=want_logsumexp)
        torch.testing.assert_close(out_BHND, expected_BHND, atol=5e-5, rtol=0)


def test_a_query_gives_later_keys_exactly_zero_and_its_row_sums_to_one():
    """transformers PR#30652: decoder, fused attention, weights asked for, no padding."""
    heads = random_heads(multi_head(32, 4, mask=CAUSAL), 50)
    w_BHNM = recomputed(heads)
    assert torch.equal(w_BHNM, w_BHNM.tril())
    torch.testing.assert_close(w_BHNM.sum(-1), torch.ones(1, 4, 50))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("options", [{}, {"soft_cap": 5.0}, {"normalizer": "relu"}])
def test_a_row_without_visible_keys_is_zero_and_spreads_no_nan(options, dtype):
    """pytorch#41508, #26098: the first key is padding, so the first of the causal queries sees nothing."""
    spec = AttentionSpec(n_heads=1, n_key_heads=1, head_size=3, scale=1.0, mask=CAUSAL, **options)
    heads = random_heads(spec, 5, dtype=dtype)
    v_BKMD = torch.ones(1, 1, 5, 3, dtype=dtype)
    padded = replace(heads, key_mask_BM=torch.tensor([[False, True, True, True, True]]))
    for want_logsumexp in (False, True):
        out_BHND, _ = attend(padded, v_BKMD, want_logsumexp=want_logsumexp)
        assert torch.equal(out_BHND[0, 0, 0], torch.zeros(3, dtype=dtype))
        if spec.normalizer == "softmax":
            torch.testing.assert_close(out_BHND[0, 0, 1:], torch.ones(4, 3, dtype=dtype))
    assert torch.equal(recomputed(padded)[0, 0, 0], torch.zeros(5))
    assert recomputed(padded).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_padding_of_any_dtype_is_the_same_as_no_such_keys(dtype):
    """apex#93, fairseq#3575: no mask value of -1e8 or -1e10 that overflows half precision."""
    heads = random_heads(multi_head(16, 2), 12, dtype=dtype)
    v_BKMD = heads.k_BKMD
    padded = replace(heads, key_mask_BM=torch.arange(12)[None] < 7)
    cropped = replace(heads, k_BKMD=heads.k_BKMD[:, :, :7])
    out_BHND, _ = attend(padded, v_BKMD, want_logsumexp=True)
    expected_BHND, _ = attend(cropped, v_BKMD[:, :, :7], want_logsumexp=True)
    assert out_BHND.isfinite().all()
    torch.testing.assert_close(out_BHND, expected_BHND)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("position", [None, AlibiPositions()])
def test_scores_of_a_half_precision_model_are_computed_in_float32(dtype, position):
    spec = multi_head(16, 2, mask=CAUSAL, position=position)
    heads = random_heads(spec, 40, dtype=dtype)
    if position is not None:
        heads = replace(heads, bias_weights=torch.tensor([2**-4, 2**-8], dtype=dtype))
    w_BHNM = recomputed(heads)
    wide = replace(heads, q_BHND=heads.q_BHND.float(), k_BKMD=heads.k_BKMD.float())
    assert w_BHNM.dtype == torch.float32
    torch.testing.assert_close(w_BHNM, recomputed(wide), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(w_BHNM.sum(-1), torch.ones(1, 2, 40))


def test_heads_whose_dimensions_are_not_neighbours_in_memory_are_read_right():
    """The kernel that returns log-sum-exps does not check strides itself."""
    heads = random_heads(multi_head(8, 2, mask=CAUSAL), 6)
    v_BKMD = torch.randn(1, 2, 6, 4, generator=torch.Generator().manual_seed(1))
    strided = replace(heads, q_BHND=heads.q_BHND.transpose(2, 3).contiguous().transpose(2, 3))
    expected_BHND, _ = attend(heads, v_BKMD, want_logsumexp=True)
    out_BHND, _ = attend(strided, v_BKMD.transpose(2, 3).contiguous().transpose(2, 3), want_logsumexp=True)
    torch.testing.assert_close(out_BHND, expected_BHND)


def torch_layer_and_ours(mode: str) -> tuple[nn.TransformerEncoderLayer, Attention, torch.Tensor]:
    """torch's layer of d = 32 and 8 heads, our attention with its weights, and an input."""
    generator = torch.Generator().manual_seed(0)
    theirs = nn.TransformerEncoderLayer(32, 8, dim_feedforward=64, dropout=0.0, batch_first=True)
    fill(theirs, seed=3)
    theirs.train(mode == "train")
    ours = Attention(multi_head(32, 8), 32).train(mode == "train")
    parts = ("query", "key", "value")
    state = {f"{part}.weight": w for part, w in zip(parts, theirs.self_attn.in_proj_weight.chunk(3), strict=True)}
    state |= {f"{part}.bias": b for part, b in zip(parts, theirs.self_attn.in_proj_bias.chunk(3), strict=True)}
    state |= {f"output.{name}": t for name, t in theirs.self_attn.out_proj.state_dict().items()}
    ours.load_state_dict(state)
    return theirs, ours, torch.randn(2, 11, 32, generator=generator)


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_weights_equal_those_of_torchs_encoder_layer(mode):
    """pytorch#128413, #82919: the same numbers in eval and in train mode."""
    theirs, ours, x_BNC = torch_layer_and_ours(mode)
    with torch.no_grad():
        their_out_BNC, their_weights_BHNM = theirs.self_attn(x_BNC, x_BNC, x_BNC, average_attn_weights=False)
        our_out_BNC = ours(x_BNC)
    torch.testing.assert_close(our_out_BNC, their_out_BNC, atol=2e-5, rtol=1e-5)
    our_weights_BHNM = dense_attention(ours, x_BNC).weights_BHNM
    torch.testing.assert_close(our_weights_BHNM.float(), their_weights_BHNM, atol=2e-5, rtol=1e-5)
    assert their_weights_BHNM.max() > 0.5


def test_cross_attention_takes_keys_and_values_from_the_context_of_another_width():
    attention = Attention(AttentionSpec(n_heads=2, n_key_heads=1, head_size=5, scale=0.4), 6, d_context=9).eval()
    fill(attention, seed=0)
    generator = torch.Generator().manual_seed(0)
    x_BNC = torch.randn(2, 4, 6, generator=generator)
    context_BMC = torch.randn(2, 7, 9, generator=generator)
    key_mask_BM = torch.tensor([[True] * 7, [True] * 3 + [False] * 4])
    with torch.no_grad():
        out_BNC = attention(x_BNC, context_BMC, key_mask_BM=key_mask_BM)
    expected = dense_attention(attention, x_BNC, context_BMC, key_mask_BM=key_mask_BM)
    torch.testing.assert_close(out_BNC.double(), expected.output_BNC, atol=2e-5, rtol=1e-5)


def test_dropout_of_weights_is_applied_in_training_only():
    attention = Attention(multi_head(8, 2, dropout=0.5), 8)
    fill(attention, seed=0)
    x_BNC = torch.randn(1, 6, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(attention.eval()(x_BNC), attention.eval()(x_BNC))
        for tap in (None, CollectingTap()):
            once_BNC, again_BNC = (
                attention.train()(x_BNC, shared=Pass(tap=tap), site="decoder.self") for _ in range(2)
            )
            assert not torch.equal(once_BNC, again_BNC)


def test_gradients_reach_every_weight():
    spec = AttentionSpec(n_heads=4, n_key_heads=2, head_size=4, scale=0.5, mask=CAUSAL, sinks=True, soft_cap=10.0)
    attention = Attention(spec, 8)
    fill(attention, seed=0)
    attention(torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))).square().sum().backward()
    for name, parameter in attention.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
