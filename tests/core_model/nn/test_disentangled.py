"""Content and distance (He et al. 2021, section 3.1; rows and logarithmic scale as in transformers' DeBERTa-v2).

The scores themselves are held against equation 4 by the property tests of attention and of traces.
"""

from dataclasses import replace

import pytest
import torch
from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

from core_model.config import (
    ConvolutionSpec,
    DisentangledPositions,
    DistanceTable,
    ModelConfig,
    NormSpec,
    StackConfig,
    multi_head,
)
from core_model.errors import ConfigError
from core_model.nn.convolution import NeighbourConvolution
from core_model.nn.disentangled import distance_row
from core_model.nn.transformer import Transformer
from core_model.shapes import tensor_shapes
from core_model.trace import Inputs, run_trace
from tests.core_model.attention_cases import fill
from tests.core_model.models import D_MODEL, N_HEADS, layer, stack

POSITION = DisentangledPositions(span=4, max_distance=9)
CONVOLUTION = ConvolutionSpec(kernel_size=3, activation="gelu", norm=NormSpec(), n_groups=2)


def disentangled_stack(position: DisentangledPositions = POSITION, n_rows: int = 8) -> StackConfig:
    """Two layers that read normed vectors of distances, with a convolution beside the first."""
    one = layer(multi_head(D_MODEL, N_HEADS, position=position))
    return replace(
        stack(layer(multi_head(D_MODEL, N_HEADS))),
        layers=(one, one),
        distances=DistanceTable(n_rows=n_rows, norm=NormSpec()),
        convolution=CONVOLUTION,
    )


@pytest.mark.parametrize(("span", "max_distance"), [(256, 512), (8, 64), (4, 9), (7, 40), (2, 5)])
def test_far_distances_share_rows_on_the_librarys_logarithmic_scale(span: int, max_distance: int) -> None:
    distance = torch.arange(-2 * max_distance, 2 * max_distance + 1)
    bucket = make_log_bucket_position(distance, span, max_distance).long()
    rows = distance_row(DisentangledPositions(span=span, max_distance=max_distance), distance)
    assert rows.tolist() == (bucket + span).clamp(0, 2 * span - 1).tolist()


def test_without_a_scale_each_distance_has_its_row_and_the_farthest_share_the_last() -> None:
    rows = distance_row(DisentangledPositions(span=3), torch.arange(-5, 6))
    assert rows.tolist() == [0, 0, 0, 1, 2, 3, 4, 5, 5, 5, 5]


@pytest.mark.parametrize("shared_maps", [False, True])
def test_all_layers_read_the_same_vectors_normed_once(shared_maps: bool) -> None:
    model = Transformer(ModelConfig(encoder=disentangled_stack(replace(POSITION, shared_maps=shared_maps)))).eval()
    fill(model, seed=0)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert shapes == tensor_shapes(model.config)
    assert shapes["encoder.distance.weight"] == (8, D_MODEL)
    assert ("encoder.layers.1.attention.distance_key.weight" in shapes) is not shared_maps
    trace = run_trace(model, Inputs(ids=[3, 1, 4, 1, 5]))
    assert model.encoder is not None and model.encoder.distance is not None and model.encoder.distance_norm is not None
    normed_RC = model.encoder.distance_norm(model.encoder.distance.weight)
    for index in range(2):
        attention = model.encoder.layer(index).attention
        key_map = attention.key if shared_maps else attention.distance_key
        assert key_map is not None
        distances = trace.heads("encoder.self", index).distances
        assert distances is not None and distances.key_HRD is not None
        torch.testing.assert_close(distances.key_HRD.transpose(0, 1).flatten(1), key_map(normed_RC))
        assert trace.n_bytes > sum(tensor.nbytes for tensor in distances.tensors)


def test_a_convolution_sees_neighbours_and_zeros_beyond_the_ends_and_at_padding() -> None:
    """out[n] = norm(added[n] + relu(bias + sum over k of weight[:, :, k] x[n + k - 1])), by hand."""
    convolution = NeighbourConvolution(ConvolutionSpec(kernel_size=3, activation="relu", norm=NormSpec()), 4)
    fill(convolution, seed=1)
    x_BNC, added_BNC = torch.randn(2, 1, 5, 4, generator=torch.Generator().manual_seed(2))
    real_BN = torch.tensor([[True, True, True, True, False]])
    weight, bias = convolution.mix.weight, convolution.mix.bias
    assert bias is not None
    mixed = []
    for position in range(5):
        total = bias
        for offset in (-1, 0, 1):
            if 0 <= position + offset < 4:
                total = total + weight[:, :, offset + 1] @ x_BNC[0, position + offset]
        mixed.append(torch.relu(total))
    want_NC = convolution.norm(added_BNC[0] + torch.stack(mixed))
    torch.testing.assert_close(convolution(x_BNC, added_BNC, real_BN)[0], want_NC)


def test_a_stack_and_its_layers_must_agree_about_distances() -> None:
    with pytest.raises(ConfigError, match="distances has 6 rows"):
        disentangled_stack(n_rows=6)
    with pytest.raises(ConfigError, match="distances has 0 rows"):
        replace(disentangled_stack(), distances=None)
    with pytest.raises(ConfigError, match="n_groups is 3"):
        replace(disentangled_stack(), convolution=replace(CONVOLUTION, n_groups=3))
    with pytest.raises(ConfigError, match="kernel_size is 2"):
        replace(CONVOLUTION, kernel_size=2)
    with pytest.raises(ConfigError, match="n_key_heads is 2"):
        multi_head(D_MODEL, N_HEADS, position=POSITION, n_key_heads=2)
    with pytest.raises(ConfigError, match="max_distance is 3"):
        DisentangledPositions(span=4, max_distance=3)
