"""A token table narrower than the model: what is projected, and how wide the rest is. N positions, C model width."""

import pytest
import torch

from core_model.config import (
    FeedForwardSpec,
    LayerSpec,
    LearnedPositions,
    MaskSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.nn.embeddings import Tokens
from core_model.nn.transformer import Transformer
from core_model.shapes import tensor_shapes

IDS_BN = torch.tensor([[3, 1, 4, 1, 5]])


def model_projecting(projects) -> Transformer:
    """Token vectors of 6 in a model of width 8, with types and a norm."""
    layer = LayerSpec(
        attention=multi_head(8, 2, mask=MaskSpec(causal=True)),
        attention_residual=ResidualSpec(),
        feed_forward=FeedForwardSpec(d_hidden=9),
        feed_forward_residual=ResidualSpec(),
    )
    embedding = TokenEmbedding(vocab_size=7, d_embedding=6, n_types=2, scale=3.0, norm=NormSpec(), projects=projects)
    stack = StackConfig(d_model=8, embedding=embedding, layers=(layer,), position=LearnedPositions(max_length=5))
    torch.manual_seed(0)
    return Transformer(ModelConfig(decoder=stack))


@pytest.mark.parametrize(("projects", "d_position"), [("sum", 6), ("tokens", 8)])
def test_positions_types_and_norm_are_as_wide_as_what_they_meet(projects, d_position):
    model = model_projecting(projects)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert shapes == tensor_shapes(model.config)
    assert shapes["decoder.position.weight"] == (5, d_position)
    assert shapes["decoder.embedding.token_type.weight"] == (2, d_position)
    assert shapes["decoder.embedding.norm.weight"] == (d_position,)


def test_projected_tokens_get_positions_after_the_projection():
    """OPT 350M (Zhang et al. 2022)."""
    model = model_projecting("tokens")
    stack = model.output_stack
    embedding = stack.embedding
    assert isinstance(embedding, Tokens)
    assert embedding.token and embedding.projection and embedding.token_type and embedding.norm and stack.position
    with torch.inference_mode():
        token_BNE = embedding.token.weight[IDS_BN]
        got_BNC = embedding(token_BNE, stack.positions(0, 5, token_BNE), None)
        token_BNC = embedding.projection(3.0 * token_BNE)
        sum_BNC = token_BNC + embedding.token_type.weight[0] + stack.position.weight
        torch.testing.assert_close(got_BNC, embedding.norm(sum_BNC))
