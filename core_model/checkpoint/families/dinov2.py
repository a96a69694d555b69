"""DINOv2 (Oquab et al. 2023): ViT with learned residual scales, in its largest size with SwiGLU; with registers
(Darcet et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core_model.checkpoint.families import vision
from core_model.checkpoint.families.family import Family, Foreign, Row, Weights, row
from core_model.checkpoint.families.fields import CountOrNone, Positive
from core_model.config import FeedForwardSpec, ModelConfig
from core_model.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Dinov2Keys(vision.VisionKeys):
    """DINOv2's own keys beside those all have."""

    mlp_ratio: Positive = 4
    use_swiglu_ffn: bool = False
    qkv_bias: bool = True
    layer_norm_eps: Positive = 1e-6
    num_register_tokens: CountOrNone = 0

    @property
    def d_hidden(self) -> int:
        """Width of the feed-forward; SwiGLU takes two thirds of it, rounded up to a multiple of 8."""
        wide = int(self.hidden_size * self.mlp_ratio)
        return (int(wide * 2 / 3) + 7) // 8 * 8 if self.use_swiglu_ffn else wide


@dataclass(frozen=True, kw_only=True)
class RegisterKeys(Dinov2Keys):
    """As above, with what a config of the model with registers leaves out."""

    num_register_tokens: CountOrNone = 4


def _read_as(family: Family, keys: Dinov2Keys, weights: Weights) -> ModelConfig:
    patches = keys.patches(n_registers=keys.num_register_tokens)
    patches = replace(patches, smooths_positions=family is REGISTERS)
    feed_forward = vision.feed_forward(keys, keys.d_hidden)
    if keys.use_swiglu_ffn:
        feed_forward = FeedForwardSpec(d_hidden=keys.d_hidden, activation="silu", gated=True)
    layer = vision.layer(keys, feed_forward, bias=keys.qkv_bias, learned_scale=True)
    head = vision.classifier(family, keys, weights, pooling="first_and_mean_patches")
    return ModelConfig(encoder=vision.encoder(keys, patches, layer), head=head)


def _write_as(family: Family, config: ModelConfig) -> Foreign:
    stack = config.output_stack
    pixels = vision.pixels_of(stack)
    first = stack.layers[0]
    if bool(pixels.n_registers) != (family is REGISTERS):
        raise ConfigError(f"the model has {pixels.n_registers} registers: DINOv2 with registers is a family of its own")
    common = vision.common_keys(config)
    if first.feed_forward.gated:
        common["hidden_act"] = "gelu"
    keys = family.keys(
        **common,
        mlp_ratio=round(first.feed_forward.d_hidden / stack.d_model * (1.5 if first.feed_forward.gated else 1)) or 1,
        use_swiglu_ffn=first.feed_forward.gated,
        qkv_bias=first.attention.query_bias,
        num_register_tokens=pixels.n_registers,
    )
    return vision.foreign(family, keys, config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "encoder.layer.{i}", "encoder.layers.{i}"
    sublayers = (("1", "attention_residual"), ("2", "feed_forward_residual"))
    if config.output_stack.layers[0].feed_forward.gated:
        maps = (
            row(f"{theirs}.mlp.weights_in.*", f"{ours}.feed_forward.gate.*", f"{ours}.feed_forward.input.*"),
            row(f"{theirs}.mlp.weights_out.*", f"{ours}.feed_forward.output.*"),
        )
    else:
        maps = (
            row(f"{theirs}.mlp.fc1.*", f"{ours}.feed_forward.input.*"),
            row(f"{theirs}.mlp.fc2.*", f"{ours}.feed_forward.output.*"),
        )
    return (
        vision.class_token_row(),
        *vision.embedding_rows(),
        *vision.attention_rows(),
        *(row(f"{theirs}.norm{number}.*", f"{ours}.{residual}.before.*") for number, residual in sublayers),
        *(
            row(f"{theirs}.layer_scale{number}.lambda1", f"{ours}.{residual}.learned_scale")
            for number, residual in sublayers
        ),
        *maps,
        *vision.output_rows(),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        **vision.sizes(weights),
        "use_swiglu_ffn": "encoder.layer.0.mlp.weights_in.weight" in weights,
        "qkv_bias": "encoder.layer.0.attention.attention.query.bias" in weights,
        "num_register_tokens": weights.size("embeddings.register_tokens", 1),
    }


FAMILY = Family(
    key="dinov2",
    label="DINOv2",
    model_types=("dinov2",),
    architectures={"Dinov2Model": None, "Dinov2ForImageClassification": "image_classes", "Dinov2Backbone": None},
    keys=Dinov2Keys,
    read=lambda keys, weights: _read_as(FAMILY, keys, weights),
    write=lambda config: _write_as(FAMILY, config),
    sizes=_sizes,
    places=vision.PLACES,
    names=vision.name_table(_rows, "dinov2"),
    markers=(r"(dinov2\.)?encoder\.layer\.0\.layer_scale1\.lambda1", vision.QUERY),
)
REGISTERS = Family(
    key="dinov2_with_registers",
    label="DINOv2 with registers",
    model_types=("dinov2_with_registers",),
    architectures={
        "Dinov2WithRegistersModel": None,
        "Dinov2WithRegistersForImageClassification": "image_classes",
        "Dinov2WithRegistersBackbone": None,
    },
    keys=RegisterKeys,
    read=lambda keys, weights: _read_as(REGISTERS, keys, weights),
    write=lambda config: _write_as(REGISTERS, config),
    sizes=_sizes,
    places=vision.PLACES,
    names=vision.name_table(_rows, "dinov2_with_registers"),
    markers=(r"(dinov2_with_registers\.)?embeddings\.register_tokens", vision.QUERY),
)
