"""The log-sum-exp of each row that a watched pass gives with its output, where more than the plain kernel is needed."""

import pytest
import torch

from core_model.config import AlibiPositions, AttentionSpec, MaskSpec
from core_model.nn.attend import attend
from core_model.nn.positions import alibi_slopes
from core_model.nn.scores import HeadInputs

N, N_HEADS, SIZE, SCALE = 300, 6, 8, 0.7
KINDS = {
    "plain": ({}, {}),
    "sinks": ({"sinks": True}, {"sinks_H": torch.tensor([1.0, -2.0, 0.0, 3.0, 120.0, -120.0])}),
    "capped": ({"soft_cap": 2.0}, {}),
    "ALiBi": ({"position": AlibiPositions()}, {"bias_weights": alibi_slopes(AlibiPositions(), N_HEADS)}),
    "padding": ({}, {"key_mask_BM": torch.arange(N)[None] < 250}),
}


def attention(n_key_heads: int, dtype: torch.dtype, options: dict, inputs: dict) -> tuple[HeadInputs, torch.Tensor]:
    spec = AttentionSpec(
        n_heads=N_HEADS,
        n_key_heads=n_key_heads,
        head_size=SIZE,
        scale=SCALE,
        mask=MaskSpec(causal=True),
        **options,
    )
    x_BHND = torch.randn(1, N_HEADS + 2 * n_key_heads, N, SIZE, generator=torch.Generator().manual_seed(0)).to(dtype)
    q_BHND, k_BKMD, v_BKMD = x_BHND.split((N_HEADS, n_key_heads, n_key_heads), dim=1)
    return HeadInputs(spec=spec, q_BHND=q_BHND, k_BKMD=k_BKMD, **inputs), v_BKMD


def by_definition(kind: str, heads: HeadInputs, v_BKMD: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Output and log-sum-exp in float64."""
    q, k, v = (x.double() for x in (heads.q_BHND, heads.k_BKMD, v_BKMD))
    k, v = (x.repeat_interleave(N_HEADS // k.shape[1], dim=1) for x in (k, v))
    s_BHNM = q @ k.mT * SCALE
    position_N = torch.arange(N)
    if kind == "capped":
        s_BHNM = 2 * torch.tanh(s_BHNM / 2)
    if kind == "ALiBi":
        slopes_H = alibi_slopes(AlibiPositions(), N_HEADS).double()
        s_BHNM = s_BHNM - slopes_H[:, None, None] * (position_N[:, None] - position_N).abs()
    s_BHNM = s_BHNM.masked_fill(position_N[:, None] < position_N, float("-inf"))
    if kind == "padding":
        s_BHNM[..., 250:] = float("-inf")
    logsumexp_BHN = s_BHNM.logsumexp(-1)
    if kind == "sinks":
        logsumexp_BHN = torch.logaddexp(logsumexp_BHN, KINDS["sinks"][1]["sinks_H"].double()[:, None])
    return (s_BHNM - logsumexp_BHN[..., None]).exp() @ v, logsumexp_BHN


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_output_and_log_sum_exp_are_those_of_the_very_queries_and_keys(kind, dtype):
    """Half precision is computed in full: its output is one rounding off."""
    heads, v_BKMD = attention(2, dtype, *KINDS[kind])
    with torch.inference_mode():
        out, logsumexp = attend(heads, v_BKMD, want_logsumexp=True)
    expected, expected_logsumexp = by_definition(kind, heads, v_BKMD)
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), expected, atol=1e-6, rtol=2**-8 if dtype == torch.bfloat16 else 1e-5)
    assert logsumexp is not None
    torch.testing.assert_close(logsumexp.double(), expected_logsumexp, atol=4e-6, rtol=1e-6)


@pytest.mark.parametrize("sink", [60.0, 95.0, 120.0])
def test_a_sink_far_above_the_scores_takes_everything_and_is_a_number(sink):
    """A weight of exp(-120) is none in float32, and that of exp(-95) hardly one."""
    sinks_H = torch.tensor([sink, 0.0, 0.0, 0.0, 0.0, 0.0])
    heads, v_BKMD = attention(6, torch.float32, {"soft_cap": 2.0, "sinks": True}, {"sinks_H": sinks_H})
    with torch.inference_mode():
        out, logsumexp = attend(heads, v_BKMD, want_logsumexp=True)
    assert logsumexp is not None
    torch.testing.assert_close(logsumexp[0, 0], torch.full((N,), sink))
    assert out[0, 0].abs().max() < 1e-20
    assert out[0, 1].isfinite().all()
    assert out[0, 1].abs().max() > 0.1
