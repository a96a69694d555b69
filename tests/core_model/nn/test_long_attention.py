"""Long attention and long linear maps on a CPU are computed in pieces, between which they may be stopped."""

import weakref
from dataclasses import replace

import numpy as np
import pytest
import torch

from core_model.cancel import CancelToken
from core_model.config import AlibiPositions, AttentionSpec, FeedForwardSpec, MaskSpec, multi_head
from core_model.errors import Cancelled
from core_model.nn import attend as module
from core_model.nn import linear
from core_model.nn.attend import attend
from core_model.nn.scores import HeadInputs
from core_model.nn.tap import Tap
from core_model.trace import Inputs, run_trace
from tests.core_model import models
from tests.core_model.counting import Watch

CAUSAL, FULL = MaskSpec(causal=True), MaskSpec()
SIZE = 8


def attention(n: int, mask: MaskSpec, *, n_heads: int = 6, n_key_heads: int = 2, dtype=torch.float32):
    """Random queries and keys of a grouped attention [H, N, D] as projections leave them, and values."""
    spec = AttentionSpec(n_heads=n_heads, n_key_heads=n_key_heads, head_size=SIZE, scale=0.7, mask=mask)
    x_BNE = torch.randn(1, n, (n_heads + 2 * n_key_heads) * SIZE, generator=torch.Generator().manual_seed(n)).to(dtype)
    x_BHND = x_BNE.unflatten(-1, (-1, SIZE)).transpose(1, 2)
    q_BHND, k_BKMD, v_BKMD = x_BHND.split((n_heads, n_key_heads, n_key_heads), dim=1)
    return HeadInputs(spec=spec, q_BHND=q_BHND, k_BKMD=k_BKMD), v_BKMD


def dense(heads: HeadInputs, v_BKMD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and log-sum-exp by definition, in float64."""
    n_groups = heads.q_BHND.shape[1] // heads.k_BKMD.shape[1]
    k_BHMD, v_BHMD = (x.double().repeat_interleave(n_groups, dim=1) for x in (heads.k_BKMD, v_BKMD))
    s_BHNM = heads.q_BHND.double() @ k_BHMD.transpose(-1, -2) * heads.spec.scale
    if heads.spec.mask.causal:
        s_BHNM = s_BHNM.masked_fill(torch.ones(s_BHNM.shape[-2:]).triu(1).bool(), float("-inf"))
    return s_BHNM.softmax(-1) @ v_BHMD, s_BHNM.logsumexp(-1)


@pytest.fixture
def shares(monkeypatch: pytest.MonkeyPatch):
    """Pieces as long as `limit` multiply-adds; calls it with what to compute, gives result and shares told."""

    def run(limit: int, heads: HeadInputs, v_BKMD: torch.Tensor):
        monkeypatch.setattr(module, "PIECE_PRODUCTS", limit)
        told: list[float] = []
        with torch.inference_mode():
            result = attend(heads, v_BKMD, want_logsumexp=True, between=told.append)
        return result, told

    return run


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mask", [CAUSAL, FULL], ids=lambda mask: mask.label)
@pytest.mark.parametrize("n", [300, 1000])
def test_heads_one_after_another_give_the_same_bits(shares, n, mask, dtype):
    heads, v_BKMD = attention(n, mask, dtype=dtype)
    (out, logsumexp), told = shares(n * n * SIZE, heads, v_BKMD)
    with torch.inference_mode():
        whole, whole_logsumexp = attend(heads, v_BKMD, want_logsumexp=True)
    assert told == pytest.approx([head / 6 for head in range(1, 7)])
    assert out.dtype == dtype
    assert torch.equal(out, whole)
    assert whole_logsumexp is not None
    assert torch.equal(logsumexp, whole_logsumexp)


@pytest.mark.parametrize("n", [1024, 1111, 2500])
@pytest.mark.parametrize("mask", [CAUSAL, FULL], ids=lambda mask: mask.label)
def test_a_head_cut_into_blocks_of_rows_equals_its_definition(shares, n, mask):
    heads, v_BKMD = attention(n, mask)
    (out, logsumexp), told = shares(n * 256 * SIZE, heads, v_BKMD)
    n_blocks = -(-n // 256)
    assert len(told) == 6 * n_blocks
    assert told == sorted(told) and told[-1] == 1
    expected, expected_logsumexp = dense(heads, v_BKMD)
    torch.testing.assert_close(out.double(), expected, atol=2e-6, rtol=1e-5)
    torch.testing.assert_close(logsumexp.double(), expected_logsumexp, atol=2e-6, rtol=1e-6)


def test_a_cut_triangle_of_half_precision_is_off_by_three_roundings_at_most(shares):
    """One of each part, one of their sum; bfloat16 has 8 bits."""
    heads, v_BKMD = attention(1500, CAUSAL, dtype=torch.bfloat16)
    (out, _), told = shares(1500 * 256 * SIZE, heads, v_BKMD)
    assert out.dtype == torch.bfloat16 and len(told) == 6 * 6
    error = (out.double() - dense(heads, v_BKMD)[0]).abs().max()
    assert error <= 3 * 2**-9 * v_BKMD.abs().max()


def test_heads_with_sinks_are_put_together_from_pieces(shares):
    plain, v_BKMD = attention(600, CAUSAL)
    sinks_H = torch.linspace(-3, 3, 6)
    heads = replace(plain, spec=replace(plain.spec, sinks=True), sinks_H=sinks_H)
    (out, logsumexp), told = shares(600 * 256 * SIZE, heads, v_BKMD)
    assert len(told) == 6 * 3
    values, keys = dense(plain, v_BKMD)
    expected = torch.logaddexp(keys, sinks_H.double()[:, None])
    torch.testing.assert_close(logsumexp.double(), expected, atol=2e-6, rtol=1e-6)
    torch.testing.assert_close(out.double(), values * (keys - expected).exp()[..., None], atol=2e-6, rtol=1e-5)


def test_no_piece_is_longer_than_the_limit_unless_it_is_the_shortest(shares):
    """256 rows are the kernel's own block."""
    heads, v_BKMD = attention(3000, CAUSAL, n_heads=1, n_key_heads=1)
    assert len(shares(3000 * 600 * SIZE, heads, v_BKMD)[1]) == -(-3000 // 512)
    assert len(shares(1, heads, v_BKMD)[1]) == -(-3000 // 256)


def test_short_attention_is_one_call():
    heads, v_BKMD = attention(600, CAUSAL)
    told: list[float] = []
    attend(heads, v_BKMD, want_logsumexp=True, between=told.append)
    assert not told


def test_what_is_trained_is_one_call(shares, monkeypatch):
    """The kernel's log-sum-exp has no gradient, so a row must not be put together from parts."""
    heads, v_BKMD = attention(600, CAUSAL, n_heads=1, n_key_heads=1)
    v_BKMD = v_BKMD.clone().requires_grad_()
    monkeypatch.setattr(module, "PIECE_PRODUCTS", 1)
    told: list[float] = []
    attend(heads, v_BKMD, want_logsumexp=True, between=told.append)[0].sum().backward()
    assert not told
    weights_BHNM = (heads.q_BHND @ heads.k_BKMD.transpose(-1, -2) * 0.7).masked_fill(
        torch.ones(600, 600).triu(1).bool(), float("-inf")
    )
    expected_M = weights_BHNM.softmax(-1).sum(-2)[0, 0]
    assert v_BKMD.grad is not None
    torch.testing.assert_close(v_BKMD.grad[0, 0, :, 0], expected_M, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"mask": MaskSpec(causal=True, window=64)},
        {"mask": MaskSpec(causal=True, n_prefix=9)},
        {"mask": CAUSAL, "soft_cap": 5.0},
        {"mask": CAUSAL, "position": AlibiPositions()},
        {"mask": CAUSAL},
    ],
    ids=["window", "prefix", "capped", "alibi", "causal"],
)
def test_a_trace_is_stopped_within_one_attention(monkeypatch, options):
    monkeypatch.setattr(module, "PIECE_PRODUCTS", 1)
    monkeypatch.setattr(module, "_BLOCK_SCORES", 1)
    monkeypatch.setattr(module, "_OWN_SCORES", 1)
    model = models.make(models.decoder_only(multi_head(16, 4, **options), n_layers=2))
    token, seen = CancelToken(), []

    def stop_at_the_first(share: float) -> None:
        seen.append(share)
        token.cancel()

    with Watch() as watch, pytest.raises(Cancelled):
        run_trace(model, Inputs(ids=[1, 2, 3, 4] * 500), cancel=token, progress=stop_at_the_first)
    assert len(seen) == 1
    assert 0 < seen[0] < 0.5  # the first of two attentions is not done
    assert watch.n_products < 0.5 * 4 * 2000**2


def test_progress_of_a_trace_rises_within_one_attention(monkeypatch):
    monkeypatch.setattr(module, "PIECE_PRODUCTS", 1)
    seen: list[float] = []
    run_trace(models.make(models.decoder_only(n_layers=2)), Inputs(ids=[1] * 700), progress=seen.append)
    assert seen == sorted(seen) and seen[-1] == 1
    assert len({share for share in seen if share < 0.5}) > 4


@pytest.mark.parametrize("options", [{}, {"gated": True}, {"bias": False}], ids=str)
def test_a_trace_is_stopped_within_a_linear_map_and_has_the_same_numbers_in_pieces(monkeypatch, options):
    """Of 700 positions a few at a time; the feed-forward network's maps too."""
    config = models.decoder_only(n_layers=1)
    assert config.decoder is not None
    layer = replace(config.decoder.layers[0], feed_forward=FeedForwardSpec(d_hidden=40, activation="silu", **options))
    model = models.make(replace(config, decoder=models.stack(layer)))
    ids = Inputs(ids=[1, 2, 3, 4, 5, 6, 7] * 100)
    whole = run_trace(model, ids)
    monkeypatch.setattr(linear, "PIECE_PRODUCTS", 16 * 16 * 64)
    pieces = run_trace(model, ids)
    np.testing.assert_allclose(models.logits_of(pieces), models.logits_of(whole), atol=1e-5, rtol=1e-5)

    token, n_maps = CancelToken(), []
    feed_forward = model.decoder.layer(0).feed_forward
    feed_forward.register_forward_pre_hook(lambda *_: token.cancel())
    feed_forward.register_forward_hook(lambda *_: n_maps.append(1))
    with pytest.raises(Cancelled):
        run_trace(model, ids, cancel=token)
    assert not n_maps  # the network did not come to its end


@pytest.mark.parametrize("has_bias", [True, False])
def test_a_linear_map_in_blocks_of_positions_is_the_map(monkeypatch, has_bias):
    monkeypatch.setattr(linear, "PIECE_PRODUCTS", 9 * 7 * 64)
    module, x_BNC = torch.nn.Linear(9, 7, bias=has_bias), torch.randn(2, 500, 9)

    class Pauses(Tap):
        n = 0

        def pause(self) -> None:
            self.n += 1

    tap = Pauses()
    with torch.inference_mode():
        y_BNE = linear.mapped(module, x_BNC, tap)
        expected = x_BNC.double() @ module.weight.double().T + (module.bias.double() if has_bias else 0)
    assert tap.n == -(-2 * 500 // 64)
    torch.testing.assert_close(y_BNE.double(), expected, atol=1e-6, rtol=1e-5)


def test_small_results_are_not_kept_between_large_blocks(monkeypatch):
    """They would keep the memory of the blocks from being used again: gigabytes in a narrow model."""
    monkeypatch.setattr(module, "_OWN_SCORES", 1 << 12)
    compute, made, most = module._attend_rows, [], []

    def watched(*given):
        most.append(sum(block() is not None for block in made))
        out_BHND, logsumexp_BHN = compute(*given)
        made.append(weakref.ref(out_BHND))
        return out_BHND, logsumexp_BHN

    heads, v_BKMD = attention(300, CAUSAL)
    heads = replace(heads, spec=replace(heads.spec, soft_cap=1e6))  # so high that it changes nothing
    expected_BHND, expected_BHN = dense(heads, v_BKMD)
    monkeypatch.setattr(module, "_attend_rows", watched)
    with torch.no_grad():
        out_BHND, logsumexp_BHN = attend(heads, v_BKMD, want_logsumexp=True)
    assert len(made) > 5
    assert max(most) <= 1
    torch.testing.assert_close(out_BHND.double(), expected_BHND, atol=1e-4, rtol=1e-4)
    assert logsumexp_BHN is not None
    torch.testing.assert_close(logsumexp_BHN.double(), expected_BHN, atol=1e-4, rtol=1e-4)
