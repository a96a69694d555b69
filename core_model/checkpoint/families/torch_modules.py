"""State dicts of PyTorch's own modules: Transformer, its encoder and decoder, their layers, MultiheadAttention.

They hold no token table: their inputs are vectors. The number of heads, whether norms come first, the activation and
add_zero_attn are in no tensor; the first is asked, the others are torch's defaults unless given. A module of one's own
around one of them is looked into for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Positive, activation, equal_heads
from core_model.config import (
    AttentionSpec,
    FeedForwardSpec,
    LayerSpec,
    MaskSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    StackConfig,
    VectorEmbedding,
    multi_head,
)
from core_model.errors import ConfigError

_PLACES = {"n_layers": "n_layers", "n_heads": "n_heads", "d_model": "d_model"}
_LAYER_PLACES = {
    **_PLACES,
    "d_hidden": "d_hidden",
    "activation": "activation",
    "eps": "layer_norm_eps",
    "norm_first": "norm_first",
}
_FIRST = r"layers\.0\.self_attn\.in_proj_weight"
_CROSSING = r"multihead_attn\.in_proj_weight"


@dataclass(frozen=True, kw_only=True)
class TorchKeys:
    """The arguments these modules are made with."""

    d_model: Count
    n_heads: Count
    n_layers: Count = 1
    n_decoder_layers: Count | None = None
    d_hidden: Count | None = None
    activation: str = "relu"
    layer_norm_eps: Positive = 1e-5
    norm_first: bool = False
    bias: bool = True
    final_norm: bool = False
    final_norm_bias: bool = True

    @property
    def norm(self) -> NormSpec:
        """Every norm of the model."""
        return NormSpec(eps=self.layer_norm_eps, bias=self.bias)

    def attention(self, *, causal: bool = False) -> AttentionSpec:
        """Every attention of the model."""
        equal_heads(self, "d_model", "n_heads")
        biases = dict.fromkeys(("query_bias", "key_bias", "value_bias", "output_bias"), self.bias)
        return multi_head(self.d_model, self.n_heads, mask=MaskSpec(causal=causal), **biases)


def _stack(keys: TorchKeys, n_layers: int, *, is_decoder: bool = False) -> StackConfig:
    residual = ResidualSpec(before=keys.norm) if keys.norm_first else ResidualSpec(total=keys.norm)
    if keys.d_hidden is None:
        raise ConfigError("layers.0.linear1.weight is missing from the file: the layers have no feed-forward")
    layer = LayerSpec(
        attention=keys.attention(causal=is_decoder),
        attention_residual=residual,
        cross_attention=keys.attention() if is_decoder else None,
        cross_residual=residual if is_decoder else ResidualSpec(),
        feed_forward=FeedForwardSpec(
            d_hidden=keys.d_hidden, activation=activation("activation", keys.activation), bias=keys.bias
        ),
        feed_forward_residual=residual,
    )
    return StackConfig(
        d_model=keys.d_model,
        embedding=VectorEmbedding(),
        layers=(layer,) * n_layers,
        final_norm=replace(keys.norm, bias=keys.final_norm_bias) if keys.final_norm else None,
    )


def _read_transformer(keys: TorchKeys, weights: Weights) -> ModelConfig:
    n_decoder_layers = keys.n_decoder_layers or keys.n_layers
    return ModelConfig(encoder=_stack(keys, keys.n_layers), decoder=_stack(keys, n_decoder_layers, is_decoder=True))


def _read_encoder(keys: TorchKeys, weights: Weights) -> ModelConfig:
    return ModelConfig(encoder=_stack(keys, keys.n_layers))


def _read_decoder(keys: TorchKeys, weights: Weights) -> ModelConfig:
    """The encoder's output is given."""
    memory = StackConfig(d_model=keys.d_model, embedding=VectorEmbedding(), layers=())
    return ModelConfig(encoder=memory, decoder=_stack(keys, keys.n_layers, is_decoder=True))


def _read_attention(keys: TorchKeys, weights: Weights) -> ModelConfig:
    """One layer that is nothing but the attention."""
    layer = LayerSpec(
        attention=keys.attention(),
        attention_residual=ResidualSpec(skip=False),
        feed_forward=FeedForwardSpec(d_hidden=0),
        feed_forward_residual=ResidualSpec(),
    )
    return ModelConfig(encoder=StackConfig(d_model=keys.d_model, embedding=VectorEmbedding(), layers=(layer,)))


def _write(config: ModelConfig) -> Foreign:
    raise ConfigError("torch.nn's modules have no config.json: save the model as another family")


def _attention_rows(theirs: str, ours: str) -> tuple[Row, ...]:
    parts = ("query", "key", "value")
    return (
        *(row(f"{theirs}in_proj_{kind}", *(f"{ours}.{part}.{kind}" for part in parts)) for kind in ("weight", "bias")),
        row(f"{theirs}out_proj.*", f"{ours}.output.*"),
    )


def _stack_rows(config: ModelConfig, theirs: str, name: str, their_layer: str = "layers.{i}.") -> tuple[Row, ...]:
    layer = config.stacks[name].layers[0]
    place = "before" if layer.attention_residual.before else "total"
    residuals = ["attention_residual", "cross_residual", "feed_forward_residual"]
    if layer.cross_attention is None:
        residuals.remove("cross_residual")
    their_layer, our_layer = f"{theirs}{their_layer}", f"{name}.layers.{{i}}"
    return (
        *_attention_rows(f"{their_layer}self_attn.", f"{our_layer}.attention"),
        *_attention_rows(f"{their_layer}multihead_attn.", f"{our_layer}.cross_attention"),
        row(f"{their_layer}linear1.*", f"{our_layer}.feed_forward.input.*"),
        row(f"{their_layer}linear2.*", f"{our_layer}.feed_forward.output.*"),
        *(
            row(f"{their_layer}norm{number}.*", f"{our_layer}.{residual}.{place}.*")
            for number, residual in enumerate(residuals, start=1)
        ),
        row(f"{theirs}norm.*", f"{name}.final_norm.*"),
    )


def _layer_sizes(first: str, weights: Weights) -> Mapping[str, object]:
    """What the first layer tells; `first` begins its names."""
    return {
        "d_model": weights.size(f"{first}self_attn.in_proj_weight", 1),
        "d_hidden": weights.size(f"{first}linear1.weight", 0),
        "bias": f"{first}self_attn.in_proj_bias" in weights,
    }


def _sizes(prefix: str, weights: Weights) -> Mapping[str, object]:
    """What a stack of layers tells of itself."""
    return {
        **_layer_sizes(f"{prefix}layers.0.", weights),
        "n_layers": weights.n_layers(f"{prefix}layers.{{i}}.self_attn.in_proj_weight") or None,
        "final_norm": f"{prefix}norm.weight" in weights,
        "final_norm_bias": f"{prefix}norm.bias" in weights,
    }


def _transformer_sizes(weights: Weights) -> Mapping[str, object]:
    n_decoder_layers = weights.n_layers("decoder.layers.{i}.self_attn.in_proj_weight")
    return {**_sizes("encoder.", weights), "n_decoder_layers": n_decoder_layers or None}


def _attention_sizes(weights: Weights) -> Mapping[str, object]:
    return {"d_model": weights.size("in_proj_weight", 1), "n_layers": 1, "bias": "in_proj_bias" in weights}


def _has_no_decoder(weights: Weights) -> bool:
    return not any("multihead_attn" in name for name in weights.shapes)


def _crosses_once(weights: Weights) -> bool:
    return sum(name.endswith("multihead_attn.in_proj_weight") for name in weights.shapes) == 1


def _is_alone(weights: Weights) -> bool:
    """Whether there is one attention in the file, without learned keys and values of its own."""
    n_attentions = sum(name.endswith("in_proj_weight") for name in weights.shapes)
    return n_attentions == 1 and "bias_k" not in weights


TRANSFORMER = Family(
    key="torch_transformer",
    label="torch.nn.Transformer",
    model_types=("torch.nn.Transformer",),
    architectures={},
    keys=TorchKeys,
    read=_read_transformer,
    write=_write,
    sizes=_transformer_sizes,
    places=_LAYER_PLACES,
    names=NameTable(
        rows=lambda config: tuple(line for name in config.stacks for line in _stack_rows(config, f"{name}.", name)),
        anchor=rf"encoder\.{_FIRST}",
    ),
    markers=(rf"(.*\.)?encoder\.{_FIRST}", r"(.*\.)?decoder\.layers\.0\.multihead_attn\.in_proj_weight"),
    layer_counts=("n_decoder_layers",),
)
ENCODER = Family(
    key="torch_encoder",
    label="torch.nn.TransformerEncoder",
    model_types=("torch.nn.TransformerEncoder",),
    architectures={},
    keys=TorchKeys,
    read=_read_encoder,
    write=_write,
    sizes=lambda weights: _sizes("", weights),
    places=_LAYER_PLACES,
    names=NameTable(rows=lambda config: _stack_rows(config, "", "encoder"), anchor=_FIRST),
    markers=(rf"(.*\.)?{_FIRST}",),
    fit=_has_no_decoder,
)
LAYER = replace(
    ENCODER,
    key="torch_encoder_layer",
    label="torch.nn.TransformerEncoderLayer",
    model_types=("torch.nn.TransformerEncoderLayer",),
    sizes=lambda weights: {**_layer_sizes("", weights), "n_layers": 1},
    names=NameTable(
        rows=lambda config: _stack_rows(config, "", "encoder", their_layer=""), anchor=r"self_attn\.in_proj_weight"
    ),
    markers=(r"(.*\.)?self_attn\.in_proj_weight", r"(.*\.)?linear1\.weight"),
    fit=_is_alone,
)
DECODER = replace(
    ENCODER,
    key="torch_decoder",
    label="torch.nn.TransformerDecoder",
    model_types=("torch.nn.TransformerDecoder",),
    read=_read_decoder,
    names=NameTable(rows=lambda config: _stack_rows(config, "", "decoder"), anchor=rf"layers\.0\.{_CROSSING}"),
    markers=(rf"(.*\.)?layers\.0\.{_CROSSING}",),
    fit=lambda weights: True,
)
DECODER_LAYER = replace(
    LAYER,
    key="torch_decoder_layer",
    label="torch.nn.TransformerDecoderLayer",
    model_types=("torch.nn.TransformerDecoderLayer",),
    read=_read_decoder,
    names=NameTable(rows=lambda config: _stack_rows(config, "", "decoder", their_layer=""), anchor=_CROSSING),
    markers=(rf"(.*\.)?{_CROSSING}", r"(.*\.)?linear1\.weight"),
    fit=_crosses_once,
)
ATTENTION = Family(
    key="torch_attention",
    label="torch.nn.MultiheadAttention",
    model_types=("torch.nn.MultiheadAttention",),
    architectures={},
    keys=TorchKeys,
    read=_read_attention,
    write=_write,
    sizes=_attention_sizes,
    places=_PLACES,
    names=NameTable(rows=lambda config: _attention_rows("", "encoder.layers.0.attention"), anchor="in_proj_weight"),
    markers=(r"(.*\.)?in_proj_weight",),
    fit=_is_alone,
)
