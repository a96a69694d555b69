"""Whole models: embeddings, positions, sharing, padding, heads. Shape letters: B batch, N positions, V outputs."""

from dataclasses import replace

import pytest
import torch

from core_model.config import (
    BucketedPositions,
    HeadSpec,
    HeadTransform,
    LearnedPositions,
    NormSpec,
    SinusoidalPositions,
    StackConfig,
    TokenEmbedding,
    multi_head,
)
from core_model.errors import TraceError
from core_model.nn.positions import sinusoidal_table
from core_model.nn.tap import Tap
from core_model.nn.transformer import pool
from tests.core_model import models
from tests.core_model.models import CAUSAL, D_MODEL, N_HEADS, VOCAB

IDS_BN = torch.tensor([[3, 14, 15, 9, 26], [5, 3, 5, 8, 9], [7, 9, 3, 2, 3]])


def embedded(stack: StackConfig, ids_BN: torch.Tensor, type_ids_BN: torch.Tensor | None = None):
    """The module of a stack's config with random weights, and what it makes of ids before its first layer."""
    config = replace(models.decoder_only(), decoder=stack, head=None)
    model = models.make(config)
    kept = {}

    class Keep(Tap):
        def activation(self, site, x):
            kept[site] = x
            return x

    with torch.inference_mode():
        model(ids_BN, type_ids_BN=type_ids_BN, tap=Keep())
    return model.decoder, kept["decoder.embedding"]


def test_equal_sequences_of_a_batch_get_equal_positions():
    """influenza_transformer#9: positions belong to the token axis, whatever the number of sequences."""
    for config in (models.decoder_only(), models.encoder_only()):
        model = models.make(config)
        with torch.inference_mode():
            logits_BNV = model(IDS_BN[:1].expand(7, 5))
            alone_BNV = model(IDS_BN[:1])
        torch.testing.assert_close(logits_BNV, alone_BNV.expand(7, -1, -1))


def test_an_embedding_is_scaled_tokens_plus_types_plus_positions_then_normed():
    """Vaswani et al. 2017, sections 3.4 and 3.5; Devlin et al. 2019, figure 2."""
    token = TokenEmbedding(vocab_size=VOCAB, d_embedding=D_MODEL, n_types=2, scale=4.0, norm=NormSpec())
    stack = replace(models.decoder_stack(), embedding=token)
    type_ids_BN = torch.tensor([[0, 0, 1, 1, 1]]).expand(3, 5)
    module, got_BNC = embedded(stack, IDS_BN, type_ids_BN)
    tables = module.embedding
    position_NC = sinusoidal_table(SinusoidalPositions(), torch.arange(5), D_MODEL)
    with torch.inference_mode():
        sum_BNC = 4.0 * tables.token.weight[IDS_BN] + tables.token_type.weight[type_ids_BN] + position_NC
        torch.testing.assert_close(got_BNC, tables.norm(sum_BNC))


def test_types_are_0_where_none_are_given():
    _, without = embedded(models.decoder_stack(), IDS_BN)
    _, zeros = embedded(models.decoder_stack(), IDS_BN, torch.zeros_like(IDS_BN))
    assert torch.equal(without, zeros)


def test_learned_positions_begin_at_their_offset():
    """OPT and BART keep two rows for padding in front."""
    position = LearnedPositions(max_length=9, offset=2)
    stack = replace(models.decoder_stack(), position=position, embedding=replace(EMBEDDING, n_types=0))
    module, got_BNC = embedded(stack, IDS_BN)
    assert module.position.weight.shape == (11, D_MODEL)
    expected_BNC = module.embedding.token.weight[IDS_BN] + module.position.weight[2:7]
    torch.testing.assert_close(got_BNC, expected_BNC)


EMBEDDING = TokenEmbedding(vocab_size=VOCAB, d_embedding=D_MODEL)


def test_a_factorised_embedding_is_projected_after_its_positions():
    """ALBERT: Lan et al. 2020, section 3.1."""
    token = TokenEmbedding(vocab_size=VOCAB, d_embedding=6)
    stack = replace(models.decoder_stack(), embedding=token)
    module, got_BNC = embedded(stack, IDS_BN)
    position_NE = sinusoidal_table(SinusoidalPositions(), torch.arange(5), 6)
    expected_BNC = module.embedding.projection(module.embedding.token.weight[IDS_BN] + position_NE)
    torch.testing.assert_close(got_BNC, expected_BNC)


def test_an_input_longer_than_the_learned_positions_is_refused_with_both_lengths():
    model = models.make(models.encoder_only())
    with pytest.raises(TraceError, match=r"the input has 65 tokens.*positions for 64"):
        model(torch.zeros(1, 65, dtype=torch.long))


def test_vectors_are_taken_in_the_place_of_ids():
    model = models.make(models.decoder_only())
    with torch.inference_mode():
        vectors_BNE = model.decoder.embedding.token.weight[IDS_BN]
        assert torch.equal(model(vectors_BNE), model(IDS_BN))


@pytest.mark.parametrize("config", [models.encoder_only(), models.decoder_only()], ids=["encoder", "decoder"])
def test_padding_at_the_end_changes_nothing_for_real_tokens(config):
    model = models.make(config)
    key_mask_BN = torch.arange(5)[None] < torch.tensor([5, 3, 1])[:, None]
    with torch.inference_mode():
        padded_BNV = model(IDS_BN, key_mask_BN=key_mask_BN)
        for row, n in enumerate((5, 3, 1)):
            torch.testing.assert_close(padded_BNV[row, :n], model(IDS_BN[row : row + 1, :n])[0], atol=2e-5, rtol=1e-4)


def test_padding_of_the_source_is_unseen_by_encoder_and_decoder():
    model = models.make(models.encoder_decoder())
    key_mask_BN = torch.arange(5)[None] < torch.tensor([5, 3, 1])[:, None]
    target_BM = torch.tensor([[1, 2, 3, 4]]).expand(3, 4)
    with torch.inference_mode():
        padded_BMV = model(IDS_BN, target_BM, key_mask_BN=key_mask_BN)
        for row, n in enumerate((5, 3, 1)):
            alone_BMV = model(IDS_BN[row : row + 1, :n], target_BM[:1])
            torch.testing.assert_close(padded_BMV[row], alone_BMV[0], atol=2e-5, rtol=1e-4)


def test_a_decoder_beside_an_encoder_needs_a_target():
    with pytest.raises(TraceError, match="decoder_ids"):
        models.make(models.encoder_decoder())(IDS_BN)


def test_a_shared_table_is_one_weight_of_the_encoder():
    model = models.make(models.encoder_decoder())
    assert "encoder.embedding.token.weight" in model.state_dict()
    assert "decoder.embedding.token.weight" not in model.state_dict()
    assert "head.output.weight" not in model.state_dict()


def test_a_tied_head_multiplies_by_the_token_table():
    """safetensors#98: tied weights are one weight, never a random second one."""
    model = models.make(models.decoder_only())
    with torch.inference_mode():
        hidden_BNC = model.hidden(IDS_BN)
        torch.testing.assert_close(model(IDS_BN), hidden_BNC @ model.decoder.embedding.token.weight.T)


def test_logits_are_scaled_then_capped():
    """Gemma 2: tanh(logits / cap) * cap; Cohere: logits * scale."""
    config = models.decoder_only()
    head = HeadSpec(n_outputs=VOCAB, task="language_model", tied=True, scale=0.5, soft_cap=2.0)
    plain, capped = models.make(config), models.make(replace(config, head=head))
    with torch.inference_mode():
        expected_BNV = 2 * torch.tanh(0.5 * plain(IDS_BN) / 2)
        torch.testing.assert_close(capped(IDS_BN), expected_BNV)


@pytest.mark.parametrize(
    ("pooling", "pick"),
    [("first", lambda x: x[:, 0]), ("last", lambda x: x[:, -1]), ("mean", lambda x: x.mean(1)), ("each", lambda x: x)],
)
def test_a_head_reads_the_positions_its_pooling_names(pooling, pick):
    transform = HeadTransform(d_output=6, activation="tanh", norm=NormSpec())
    head = HeadSpec(n_outputs=3, task="sequence_classes", pooling=pooling, transform=transform, bias=True)
    model = models.make(replace(models.encoder_only(), head=head))
    with torch.inference_mode():
        x = torch.tanh(model.head.transform(pick(model.hidden(IDS_BN))))
        torch.testing.assert_close(model(IDS_BN), model.head.output(model.head.transform_norm(x)))


@pytest.mark.parametrize("pooling", ["first", "last", "mean", "each"])
def test_a_head_reads_of_a_padded_sequence_what_it_reads_of_the_same_one_alone(pooling):
    head = HeadSpec(n_outputs=3, task="sequence_classes", pooling=pooling)
    model = models.make(replace(models.encoder_only(), head=head))
    key_mask_BN = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    with torch.inference_mode():
        padded = model(IDS_BN[:2], key_mask_BN=key_mask_BN)[1]
        alone = model(IDS_BN[1:2, :3])[0]
    torch.testing.assert_close(padded[:3] if pooling == "each" else padded, alone)


def test_padding_alone_is_refused_where_it_is_to_be_pooled():
    with pytest.raises(TraceError, match="padding alone"):
        pool(torch.ones(2, 3, 2), "last", key_mask_BN=torch.tensor([[True] * 3, [False] * 3]))


def test_a_mask_of_earlier_tokens_too_is_read_from_its_end():
    """As where the earlier ones are in a cache."""
    key_mask_BN = torch.tensor([[False, True, True, True, True]])
    assert pool(torch.arange(4.0).view(1, 2, 2), "mean", key_mask_BN=key_mask_BN).tolist() == [[1.0, 2.0]]


def test_padding_before_a_sequence_is_not_the_first_position_a_head_reads():
    x_BNC = torch.arange(8.0).view(1, 4, 2)
    key_mask_BN = torch.tensor([[False, True, True, False]])
    assert pool(x_BNC, "first", key_mask_BN=key_mask_BN).tolist() == [[2.0, 3.0]]


def test_layers_that_share_weights_run_the_same_module_again():
    """ALBERT: Lan et al. 2020, section 3.1."""
    config = models.decoder_only(n_layers=3)
    shared = models.make(replace(config, decoder=replace(models.decoder_stack(n_layers=3), weights_of=(0, 0, 0))))
    assert not any("layers.1" in name or "layers.2" in name for name in shared.state_dict())
    copied = models.make(config)
    state = shared.state_dict()
    copies = {n.replace(".0.", f".{i}.", 1): t for i in range(3) for n, t in state.items() if ".layers.0." in n}
    copied.load_state_dict(state | copies)
    with torch.inference_mode():
        assert torch.equal(shared(IDS_BN), copied(IDS_BN))


def test_a_bias_table_of_another_layer_is_used_as_if_it_were_copied():
    """transformers#13397: T5 keeps one table in its first layer."""
    buckets = BucketedPositions(n_buckets=8, max_distance=10)
    own = multi_head(D_MODEL, N_HEADS, mask=CAUSAL, position=buckets)
    borrowed = replace(own, position=replace(buckets, from_layer=0))
    stack = models.stack(models.layer(own), models.layer(borrowed), models.layer(borrowed))
    shared = models.make(replace(models.decoder_only(), decoder=stack))
    tables = [name for name in shared.state_dict() if name.endswith("position_bias.weight")]
    assert tables == ["decoder.layers.0.attention.position_bias.weight"]
    copied = models.make(models.decoder_only(own, n_layers=3))
    state = shared.state_dict()
    copied.load_state_dict(state | {tables[0].replace(".0.", f".{i}."): state[tables[0]] for i in (1, 2)})
    with torch.inference_mode():
        assert torch.equal(shared(IDS_BN), copied(IDS_BN))
