"""What a stack reads besides tokens: vectors, patches of an image, audio features."""

import torch

from core_model.config import (
    AudioEmbedding,
    FeedForwardSpec,
    LayerSpec,
    LearnedPositions,
    ModelConfig,
    PatchEmbedding,
    ResidualSpec,
    StackConfig,
    VectorEmbedding,
    multi_head,
)
from core_model.nn.embeddings import AudioFrames, Patches, make_embedding
from core_model.nn.initialization import initialize
from core_model.nn.transformer import Transformer, pool
from core_model.shapes import tensor_shapes
from tests.core_model.checkpoint.configs import image_classifier, listener, two_towers

WIDTH = 12


def stack(embedding, **options) -> StackConfig:
    layer = LayerSpec(
        attention=multi_head(WIDTH, 3),
        attention_residual=ResidualSpec(),
        feed_forward=FeedForwardSpec(d_hidden=20),
        feed_forward_residual=ResidualSpec(),
    )
    return StackConfig(d_model=WIDTH, embedding=embedding, layers=(layer,), **options)


def test_the_weights_of_every_kind_are_those_its_description_counts():
    for make in (image_classifier, listener, two_towers):
        config = make()
        shapes = {name: tuple(tensor.shape) for name, tensor in Transformer(config).state_dict().items()}
        assert shapes == tensor_shapes(config)


def test_vectors_come_in_as_they_are_with_their_positions():
    model = Transformer(ModelConfig(encoder=stack(VectorEmbedding(), position=LearnedPositions(max_length=5))))
    x_BNC = torch.randn(1, 4, WIDTH)
    assert model.encoder is not None and model.encoder.position is not None
    given_BNC = model.encoder.embedding(x_BNC, model.encoder.positions(0, 4, x_BNC), None)
    torch.testing.assert_close(given_BNC, x_BNC + model.encoder.position.weight[:4])


def test_patches_are_read_row_by_row_behind_class_tokens_and_registers():
    """A patch is one linear map of its pixels, channel by channel (Dosovitskiy et al. 2021, eq. 1)."""
    spec = PatchEmbedding(image_size=(4, 9), patch_size=(2, 3), n_channels=2, n_registers=2)
    embedding = make_embedding(stack(spec), own_table=True)
    assert isinstance(embedding, Patches) and embedding.class_tokens is not None and embedding.registers is not None
    with torch.no_grad():
        embedding.class_tokens.fill_(5.0)
        embedding.registers.fill_(7.0)
        pixels_BKYX = torch.randn(1, 2, 4, 9)
        x_BNC = embedding.vectors(pixels_BKYX)
        assert x_BNC.shape == (1, spec.n_positions, WIDTH)
        second = pixels_BKYX[0, :, 0:2, 3:6].flatten()
        assert embedding.patches.bias is not None
        expected_C = embedding.patches.weight.flatten(1) @ second + embedding.patches.bias
        position_NC = torch.arange(7.0)[:, None].expand(7, WIDTH)
        got_BNC = embedding(x_BNC, position_NC, None)
    assert got_BNC.shape == (1, spec.n_tokens(spec.image_size), WIDTH)
    torch.testing.assert_close(got_BNC[0, 0], torch.full((WIDTH,), 5.0))
    torch.testing.assert_close(got_BNC[0, 1:3], torch.full((2, WIDTH), 7.0))
    torch.testing.assert_close(got_BNC[0, 4], expected_C + 2)


def test_sound_has_a_vector_every_stride_frames():
    spec = AudioEmbedding(n_features=5)
    embedding = make_embedding(stack(spec), own_table=True)
    assert isinstance(embedding, AudioFrames)
    for n_frames in (1, 2, 7, 8):
        assert embedding.vectors(torch.randn(1, 5, n_frames)).shape == (1, spec.n_tokens(n_frames), WIDTH)


def test_what_a_head_reads_of_an_image_leaves_out_what_stands_before_the_patches():
    x_BNC = torch.arange(5.0)[None, :, None].expand(1, 5, 2)
    assert pool(x_BNC, "mean_patches", 3).tolist() == [[3.5, 3.5]]
    assert pool(x_BNC, "first_and_mean_patches", 3).tolist() == [[0.0, 0.0, 3.5, 3.5]]
    assert pool(x_BNC, "first_two").tolist() == [[0.0, 0.0, 1.0, 1.0]]


def test_a_learned_scale_starts_as_one_and_patches_as_a_linear_map():
    model = Transformer(image_classifier())
    initialize(model, generator=torch.Generator().manual_seed(0))
    assert model.encoder is not None
    scale_C = model.encoder.layer(0).attention_residual.learned_scale
    assert scale_C is not None and scale_C.tolist() == [1.0] * WIDTH
    embedding = model.encoder.embedding
    assert isinstance(embedding, Patches)
    limit = (6 / (WIDTH + 2 * 2 * 3)) ** 0.5
    largest = embedding.patches.weight.abs().max().item()
    assert 0.9 * limit < largest <= limit


def test_a_lone_attention_gives_what_it_attends_to_alone():
    model = Transformer(two_towers())
    assert model.vision is not None
    x_BNC = torch.randn(1, 4, WIDTH)
    with torch.inference_mode():
        hidden = model.towers({"vision": x_BNC})
        torch.testing.assert_close(hidden["vision"], model.vision.layer(0).attention(x_BNC))
    assert list(hidden) == ["vision"]
