"""Norms against their formulas in float64, and against the rounding order of the models that use them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from core_model.config import NormSpec
from core_model.nn.norms import make_norm
from tests.core_model.attention_cases import fill, norms
from tests.core_model.dense import dense_norm


@given(spec=norms, width=st.integers(2, 9), per_head=st.booleans(), seed=st.integers(0, 100))
def test_a_norm_equals_its_formula(spec: NormSpec, width: int, per_head: bool, seed: int):
    norm = make_norm(spec, (3, width) if per_head else width)
    fill(norm, seed)
    x = 3 * torch.randn(2, 4, 3, width, generator=torch.Generator().manual_seed(seed)) + 1
    state = {name: tensor.double() for name, tensor in norm.state_dict().items()}
    expected = dense_norm(spec, x.double(), state.get("weight"), state.get("bias"))
    with torch.no_grad():
        torch.testing.assert_close(norm(x).double(), expected, atol=1e-4, rtol=1e-4)


@given(spec=norms)
def test_a_new_norm_has_gain_one_and_bias_zero(spec: NormSpec):
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(0))
    expected = dense_norm(spec, x.double(), None, None)
    torch.testing.assert_close(make_norm(spec, 6)(x).double(), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("theirs", "unit_offset"), [(LlamaRMSNorm, False), (GemmaRMSNorm, True)])
def test_rms_norms_round_bfloat16_where_the_models_do(theirs, unit_offset):
    reference = theirs(32, eps=1e-6)
    ours = make_norm(NormSpec(kind="rms", eps=1e-6, unit_offset=unit_offset), 32)
    fill(ours, seed=0)
    reference.load_state_dict(ours.state_dict())
    x = (5 * torch.randn(7, 32, generator=torch.Generator().manual_seed(0))).bfloat16()
    with torch.no_grad():
        assert torch.equal(ours.bfloat16()(x), reference.bfloat16()(x))


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_the_square_of_a_large_half_precision_value_does_not_overflow(kind):
    """300^2 is beyond float16."""
    x = torch.tensor([[300.0, -300.0, 300.0, -300.0]], dtype=torch.float16)
    normed = make_norm(NormSpec(kind=kind), 4).half()(x)
    torch.testing.assert_close(normed, x.sign(), atol=1e-3, rtol=0)
