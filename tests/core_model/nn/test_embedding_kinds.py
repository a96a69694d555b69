"""Less usual ways into and out of a model: tokens masked by zeros, square projections, one logit a token."""

from dataclasses import replace

import pytest
import torch

from core_model.config import HeadSpec, ModelConfig, TokenEmbedding, ZeroedTokens, multi_head
from core_model.errors import ConfigError
from core_model.nn.transformer import Transformer
from core_model.shapes import tensor_shapes
from tests.core_model.models import D_MODEL, N_HEADS, VOCAB, layer, stack

MASK = 5
TRAINED_SHARE = 0.12


def encoder_with(embedding: TokenEmbedding, head: HeadSpec | None = None) -> Transformer:
    """A one-layer encoder with this embedding."""
    torch.manual_seed(0)
    spec = replace(stack(layer(multi_head(D_MODEL, N_HEADS))), embedding=embedding)
    return Transformer(ModelConfig(encoder=spec, head=head)).eval()


def zeroing() -> Transformer:
    """An encoder that masks a token by zeros."""
    zeroed = ZeroedTokens(token=MASK, trained_share=TRAINED_SHARE)
    return encoder_with(TokenEmbedding(vocab_size=VOCAB, d_embedding=D_MODEL, zeroed=zeroed))


def vectors_read(model: Transformer, ids: list[list[int]], key_mask: torch.Tensor | None = None) -> torch.Tensor:
    """The token vectors [B, N, C] that reach the embedding."""
    seen = []
    assert model.encoder is not None
    model.encoder.embedding.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.inference_mode():
        model(torch.tensor(ids), key_mask_BN=key_mask)
    return seen[0]


@pytest.mark.parametrize(("ids", "kept"), [([1, 2, 3, 4], 4), ([1, MASK, 3, MASK], 2), ([MASK, 1, 1, 1], 3)])
def test_masked_tokens_are_zero_and_the_others_make_up_for_them(ids: list[int], kept: int) -> None:
    """ESM's own rule: times (1 - 0.12) / (1 - share masked here), so 0.88 x 4 / kept."""
    model = zeroing()
    got_NC = vectors_read(model, [ids])[0]
    table_VC = model.state_dict()["encoder.embedding.token.weight"]
    want_NC = table_VC[torch.tensor(ids)] * (torch.tensor(ids) != MASK)[:, None] * 0.88 * 4 / kept
    torch.testing.assert_close(got_NC, want_NC)


def test_the_share_of_masked_tokens_is_that_of_each_example_without_its_padding() -> None:
    model = zeroing()
    padded = torch.tensor([[True, True, False, False], [True, True, True, True]])
    both = vectors_read(model, [[1, MASK, 0, 0], [1, 2, 3, 4]], padded)
    torch.testing.assert_close(both[0, :2], vectors_read(model, [[1, MASK]])[0])
    torch.testing.assert_close(both[1], vectors_read(model, [[1, 2, 3, 4]])[0])


def test_an_input_of_nothing_but_masks_stays_finite() -> None:
    assert vectors_read(zeroing(), [[MASK, MASK]]).abs().sum() == 0


def test_equal_widths_are_projected_where_the_config_says_so() -> None:
    model = encoder_with(TokenEmbedding(vocab_size=VOCAB, d_embedding=D_MODEL, always_projects=True))
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert shapes["encoder.embedding.projection.weight"] == (D_MODEL, D_MODEL)
    assert shapes == tensor_shapes(model.config)


def test_whether_a_token_was_replaced_is_one_logit_a_position() -> None:
    head = HeadSpec(n_outputs=1, task="replaced_tokens", bias=True)
    model = encoder_with(TokenEmbedding(vocab_size=VOCAB, d_embedding=D_MODEL), head)
    with torch.inference_mode():
        assert model(torch.tensor([[1, 2, 3]])).shape == (1, 3)
    with pytest.raises(ConfigError, match="n_outputs is 2"):
        replace(head, n_outputs=2)
