"""What the families of vision transformers have in common: keys of config.json, patches, layers, a classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families.conversion import WRAPPED
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import (
    Count,
    Positive,
    Rate,
    activation,
    activation_name,
    class_names,
    classes,
    equal_heads,
)
from core_model.config import (
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    LearnedPositions,
    ModelConfig,
    NormSpec,
    PatchEmbedding,
    Pooling,
    ResidualSpec,
    StackConfig,
    multi_head,
)
from core_model.errors import ConfigError

PLACES = {
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "d_model": "hidden_size",
    "activation": "hidden_act",
    "eps": "layer_norm_eps",
}
PATCHES = "embeddings.patch_embeddings.projection.weight"
FIRST_MAP = "encoder.layer.0.intermediate.dense.weight"
QUERY = r"(\w+\.)?encoder\.layer\.0\.attention\.attention\.query\.weight"
"""A pattern of a name that tells, with another, the family of a file without a config."""


@dataclass(frozen=True, kw_only=True)
class PictureKeys:
    """The keys of config.json that say what a picture is cut into."""

    image_size: Count | list[Count]
    patch_size: Count | list[Count]
    num_channels: Count = 3

    def patches(self, **more: Any) -> PatchEmbedding:
        """The patches; `more` of the PatchEmbedding."""
        return PatchEmbedding(
            image_size=_rows_and_columns("image_size", self.image_size),
            patch_size=_rows_and_columns("patch_size", self.patch_size),
            n_channels=self.num_channels,
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class VisionKeys(PictureKeys):
    """The keys of config.json that mean the same in every family of vision transformers."""

    hidden_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    hidden_act: str = "gelu"
    layer_norm_eps: Positive = 1e-12
    hidden_dropout_prob: Rate = 0.0
    attention_probs_dropout_prob: Rate = 0.0
    id2label: dict[str, str] | None = None

    @property
    def norm(self) -> NormSpec:
        """Every norm of the model."""
        return NormSpec(eps=self.layer_norm_eps)

    def patches(self, **more: Any) -> PatchEmbedding:
        """The patches, dropped out as all that the layers read."""
        return super().patches(dropout=self.hidden_dropout_prob, **more)


def _rows_and_columns(name: str, size: int | list[int]) -> tuple[int, int]:
    """Rows and columns; one number stands for both."""
    if isinstance(size, int):
        return size, size
    if len(size) != 2:
        raise ConfigError(f"{name} is {size} in config.json: expected one number, or two for rows and columns")
    return size[0], size[1]


def layer(keys: VisionKeys, feed_forward: FeedForwardSpec, *, bias: bool = True, **residual: Any) -> LayerSpec:
    """A pre-norm layer; `bias` is of queries, keys and values, `residual` more of the ResidualSpec."""
    equal_heads(keys, "hidden_size", "num_attention_heads")
    spec = ResidualSpec(before=keys.norm, dropout=keys.hidden_dropout_prob, **residual)
    attention = multi_head(
        keys.hidden_size,
        keys.num_attention_heads,
        query_bias=bias,
        key_bias=bias,
        value_bias=bias,
        dropout=keys.attention_probs_dropout_prob,
    )
    return LayerSpec(
        attention=attention, attention_residual=spec, feed_forward=feed_forward, feed_forward_residual=spec
    )


def encoder(keys: VisionKeys, patches: PatchEmbedding, layer: LayerSpec) -> StackConfig:
    """As many of these layers as the keys say, over patches with learned positions, and a norm at the end."""
    return StackConfig(
        d_model=keys.hidden_size,
        embedding=patches,
        position=LearnedPositions(max_length=patches.n_positions),
        layers=(layer,) * keys.num_hidden_layers,
        final_norm=keys.norm,
    )


def feed_forward(keys: VisionKeys, d_hidden: int) -> FeedForwardSpec:
    """Two maps around the activation that the keys name."""
    return FeedForwardSpec(d_hidden=d_hidden, activation=activation("hidden_act", keys.hidden_act))


def classifier(
    family: Family, keys: VisionKeys, weights: Weights, *, pooling: Pooling = "first", name: str = "classifier"
) -> HeadSpec | None:
    """The head a checkpoint has: one linear map to classes of images; None for hidden states only."""
    task = weights.task(family, {"image_classes": f"{name}.weight"})
    if task is None:
        return None
    n_labels, labels = classes(keys.id2label, weights.size(f"{name}.weight", 0))
    return HeadSpec(n_outputs=n_labels, task="image_classes", pooling=pooling, bias=True, labels=labels)


def common_keys(config: ModelConfig) -> dict[str, Any]:
    """The `VisionKeys` of a config, by name."""
    stack = config.output_stack
    return {
        **stack_keys(stack),
        **picture_keys(stack),
        "hidden_dropout_prob": pixels_of(stack).dropout,
        "attention_probs_dropout_prob": stack.layers[0].attention.dropout,
        "id2label": class_names(config.head),
    }


def stack_keys(stack: StackConfig) -> dict[str, Any]:
    """The keys that say how many layers there are, and of which sizes."""
    first = stack.layers[0]
    norm = first.attention_residual.before
    return {
        "hidden_size": stack.d_model,
        "num_hidden_layers": stack.n_layers,
        "num_attention_heads": first.attention.n_heads,
        "hidden_act": activation_name(first.feed_forward.activation),
        "layer_norm_eps": norm.eps if norm else 1e-12,
    }


def picture_keys(stack: StackConfig) -> dict[str, Any]:
    """The `PictureKeys` of a stack, by name."""
    pixels = pixels_of(stack)
    return {
        "image_size": _written(pixels.image_size),
        "patch_size": _written(pixels.patch_size),
        "num_channels": pixels.n_channels,
    }


def pixels_of(stack: StackConfig) -> PatchEmbedding:
    """The patches of a stack; ConfigError where it reads something else."""
    if not isinstance(stack.embedding, PatchEmbedding):
        raise ConfigError("the model reads no pixels: there they are all it reads")
    return stack.embedding


def _written(size: tuple[int, int]) -> int | list[int]:
    return size[0] if size[0] == size[1] else list(size)


def foreign(family: Family, keys: VisionKeys, config: ModelConfig) -> Foreign:
    """The keys with the class of transformers that has the config's head."""
    return Foreign(keys=keys, architecture=family.architecture_for(config.head.task if config.head else None))


def embedding_rows() -> tuple[Row, ...]:
    """Patches and what is learned beside them; class tokens are the family's own."""
    return (
        row("embeddings.patch_embeddings.projection.*", "encoder.embedding.patches.*"),
        row("embeddings.position_embeddings", "encoder.position.weight", conversion=WRAPPED),
        row("embeddings.register_tokens", "encoder.embedding.registers", conversion=WRAPPED),
    )


def class_token_row() -> Row:
    """One class token."""
    return row("embeddings.cls_token", "encoder.embedding.class_tokens", conversion=WRAPPED)


def attention_rows() -> tuple[Row, ...]:
    """BERT's names of an attention."""
    theirs, ours = "encoder.layer.{i}.attention", "encoder.layers.{i}.attention"
    return (
        *(row(f"{theirs}.attention.{part}.*", f"{ours}.{part}.*") for part in ("query", "key", "value")),
        row(f"{theirs}.output.dense.*", f"{ours}.output.*"),
    )


def bert_layer_rows() -> tuple[Row, ...]:
    """BERT's names of a feed-forward, with norms before."""
    theirs, ours = "encoder.layer.{i}", "encoder.layers.{i}"
    return (
        *attention_rows(),
        row(f"{theirs}.layernorm_before.*", f"{ours}.attention_residual.before.*"),
        row(f"{theirs}.layernorm_after.*", f"{ours}.feed_forward_residual.before.*"),
        row(f"{theirs}.intermediate.dense.*", f"{ours}.feed_forward.input.*"),
        row(f"{theirs}.output.dense.*", f"{ours}.feed_forward.output.*"),
    )


def output_rows() -> tuple[Row, ...]:
    """The last norm and the classifier."""
    return row("layernorm.*", "encoder.final_norm.*"), row("classifier.*", "head.output.*")


def sizes(weights: Weights, n_before_patches: int = 1) -> Mapping[str, object]:
    """What the shapes of a file tell; images are taken to be square, as their patches."""
    patch, n_positions = weights.size(PATCHES, 2), weights.size("embeddings.position_embeddings", 1)
    side = round(max((n_positions or 0) - n_before_patches, 0) ** 0.5)
    return {
        "hidden_size": weights.size(PATCHES, 0),
        "num_channels": weights.size(PATCHES, 1),
        "patch_size": patch,
        "image_size": side * patch if side and patch else None,
        "num_hidden_layers": weights.n_layers("encoder.layer.{i}.attention.attention.query.weight") or None,
    }


def name_table(rows: Any, prefix: str, *unused: str, roots: tuple[str, ...] = ()) -> NameTable:
    """The names of a family; `unused` are patterns of further weights that are not used, `roots` of further heads."""
    return NameTable(
        rows=rows,
        prefixes=(f"{prefix}.",),
        roots=("classifier.", *roots),
        unused=(r"embeddings\.mask_token", r"pooler\.dense\..*", r"classifier\..*", *unused),
    )
