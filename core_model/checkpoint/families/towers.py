"""What CLIP and SigLIP share: a tower of text and one of vision, each with a vector, alone or compared with each other.

A `Kind` says how they differ, and makes the three families of either: both towers in one file, and each alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from core_model.checkpoint.families import vision
from core_model.checkpoint.families.conversion import FIRST_ROW
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import (
    Count,
    Positive,
    Rate,
    SpecialKeys,
    activation,
    class_names,
    classes,
    equal_heads,
    special_keys,
)
from core_model.config import (
    EmbeddingSpec,
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    LearnedPositions,
    MaskSpec,
    ModelConfig,
    NormSpec,
    ResidualSpec,
    SpecialTokens,
    StackConfig,
    TokenEmbedding,
    VectorSpec,
    VectorsSpec,
    multi_head,
)
from core_model.errors import ConfigError

_PLACES = {**vision.PLACES, "d_hidden": "intermediate_size"}
_TEXT_PLACES = {**_PLACES, "vocab_size": "vocab_size", "max_length": "max_position_embeddings"}


@dataclass(frozen=True, kw_only=True)
class TowerKeys:
    """The keys of config.json that both towers have."""

    hidden_size: Count
    intermediate_size: Count
    num_hidden_layers: Count
    num_attention_heads: Count
    hidden_act: str
    layer_norm_eps: Positive
    attention_dropout: Rate = 0.0

    @property
    def norm(self) -> NormSpec:
        """Every norm of the tower."""
        return NormSpec(eps=self.layer_norm_eps)

    @property
    def feed_forward(self) -> FeedForwardSpec:
        """Every feed-forward of the tower."""
        return FeedForwardSpec(d_hidden=self.intermediate_size, activation=activation("hidden_act", self.hidden_act))

    def stack(
        self, embedding: EmbeddingSpec, n_positions: int, *, causal: bool = False, has_final_norm: bool = True
    ) -> StackConfig:
        """A tower of pre-norm layers over an embedding with learned positions."""
        equal_heads(self, "hidden_size", "num_attention_heads")
        residual = ResidualSpec(before=self.norm)
        layer = LayerSpec(
            attention=multi_head(
                self.hidden_size,
                self.num_attention_heads,
                mask=MaskSpec(causal=causal),
                dropout=self.attention_dropout,
            ),
            attention_residual=residual,
            feed_forward=self.feed_forward,
            feed_forward_residual=residual,
        )
        return StackConfig(
            d_model=self.hidden_size,
            embedding=embedding,
            position=LearnedPositions(max_length=n_positions),
            layers=(layer,) * self.num_hidden_layers,
            final_norm=self.norm if has_final_norm else None,
        )


@dataclass(frozen=True, kw_only=True)
class TextKeys(TowerKeys, SpecialKeys):
    """The keys of the text tower."""

    vocab_size: Count
    max_position_embeddings: Count

    @property
    def tokens(self) -> TokenEmbedding:
        """Its token table."""
        return TokenEmbedding(vocab_size=self.vocab_size, d_embedding=self.hidden_size)

    def tower(self) -> StackConfig:
        """The stack they describe."""
        raise NotImplementedError

    def vector(self, weights: Weights) -> VectorSpec:
        """What it makes of a text; `weights` tell whether there is a map behind it."""
        raise NotImplementedError

    @classmethod
    def of(cls, stack: StackConfig, vector: VectorSpec | None, special: SpecialTokens) -> Self:
        """The keys of a tower."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class VisionKeys(TowerKeys, vision.PictureKeys):
    """The keys of the vision tower."""

    def tower(self) -> StackConfig:
        """The stack they describe."""
        raise NotImplementedError

    def vector(self, weights: Weights) -> VectorSpec | None:
        """What it makes of a picture, if it does; `weights` tell whether there is a map behind it."""
        raise NotImplementedError

    @classmethod
    def of(cls, stack: StackConfig, vector: VectorSpec | None) -> Self:
        """The keys of a tower."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class PairKeys:
    """The keys of both."""

    text_config: TextKeys
    vision_config: VisionKeys
    id2label: dict[str, str] | None = None

    @property
    def towers(self) -> tuple[TextKeys, VisionKeys]:
        """The keys of each, with what is said once for both."""
        return self.text_config, self.vision_config

    @classmethod
    def of(cls, vision_config: VisionKeys, **more: Any) -> Self:
        """The keys of a pair; without a text tower those of text are the library's own."""
        return cls(vision_config=vision_config, **more)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One way to compare text and picture. `rows` are the names of what stands behind the towers, `classes` what
    transformers' classes begin with. Towers alone `with_projection` are classes of their own."""

    key: str
    label: str
    classes: str
    pair: type[PairKeys]
    text: type[TextKeys]
    vision: type[VisionKeys]
    rows: tuple[Row, ...]
    bias: bool = False
    with_projection: bool = False

    @cached_property
    def family(self) -> Family:
        """Both towers in one file, or the vision tower with a classifier."""
        classifies = f"{self.classes}ForImageClassification"
        return Family(
            key=self.key,
            label=self.label,
            model_types=(self.key,),
            architectures={f"{self.classes}Model": None, classifies: "image_classes"},
            keys=self.pair,
            read=self._read,
            write=self._write,
            sizes=lambda weights: {},
            places={name: f"text_config.{key}" for name, key in _TEXT_PLACES.items()},
            names=self._names(),
            layer_counts=("vision_config.num_hidden_layers",),
        )

    @cached_property
    def text_family(self) -> Family:
        """The text tower alone."""
        return Family(
            key=f"{self.key}_text",
            label=f"{self.label}'s text tower",
            model_types=(f"{self.key}_text_model",),
            architectures=self._alone("Text"),
            keys=self.text,
            read=lambda keys, weights: ModelConfig(
                text=keys.tower(), special=keys.special, vectors=VectorsSpec(text=keys.vector(weights))
            ),
            write=self._write_text,
            sizes=_text_sizes,
            places=_TEXT_PLACES,
            names=self._names("text_model."),
        )

    @cached_property
    def vision_family(self) -> Family:
        """The vision tower alone."""
        return Family(
            key=f"{self.key}_vision",
            label=f"{self.label}'s vision tower",
            model_types=(f"{self.key}_vision_model",),
            architectures=self._alone("Vision"),
            keys=self.vision,
            read=lambda keys, weights: ModelConfig(vision=keys.tower(), vectors=_vision_vectors(keys, weights)),
            write=self._write_vision,
            sizes=_vision_sizes,
            places=_PLACES,
            names=self._names("vision_model."),
        )

    def _alone(self, tower: str) -> dict[str, None]:
        """The classes of transformers that are one tower."""
        name = f"{self.classes}{tower}Model"
        return dict.fromkeys((name, f"{name}WithProjection") if self.with_projection else (name,))

    def _names(self, alone: str = "") -> NameTable:
        """The names of both towers; those of one `alone` may lack their beginning."""
        return NameTable(
            rows=lambda config: (*_rows("text"), *_rows("vision"), *self.rows, row("classifier.*", "head.output.*")),
            spellings=((rf"^(?!{alone}|\w+_projection\.|logit_)", alone),) if alone else (),
            buffers=(r".*embeddings\.position_ids",),
            unused=(r"(text|visual)_projection\..*", r"logit_(scale|bias)", r"classifier\..*"),
        )

    def _read(self, keys: PairKeys, weights: Weights) -> ModelConfig:
        text, picture = keys.towers
        if weights.task(self.family, {"image_classes": "classifier.weight"}) is None:
            vectors = VectorsSpec(
                text=text.vector(weights), vision=picture.vector(weights), compared=True, bias=self.bias
            )
            return ModelConfig(text=text.tower(), vision=picture.tower(), special=text.special, vectors=vectors)
        n_outputs, labels = classes(keys.id2label, weights.size("classifier.weight", 0))
        head = HeadSpec(n_outputs=n_outputs, task="image_classes", pooling="mean_patches", bias=True, labels=labels)
        return ModelConfig(vision=picture.tower(), head=head, vectors=_vision_vectors(picture, weights))

    def _write(self, config: ModelConfig) -> Foreign:
        text = {} if config.text is None else {"text_config": self._text_keys(config)}
        keys = self.pair.of(self._vision_keys(config), **text, id2label=class_names(config.head))
        return Foreign(keys=keys, architecture=self.family.architecture_for(config.head and config.head.task))

    def _write_text(self, config: ModelConfig) -> Foreign:
        vector = config.vectors and config.vectors.text
        return Foreign(keys=self._text_keys(config), architecture=self._class_alone("Text", vector))

    def _write_vision(self, config: ModelConfig) -> Foreign:
        vector = config.vectors and config.vectors.vision
        return Foreign(keys=self._vision_keys(config), architecture=self._class_alone("Vision", vector))

    def _class_alone(self, tower: str, vector: VectorSpec | None) -> str:
        first, *others = self._alone(tower)
        return others[0] if others and vector is not None and vector.d_output is not None else first

    def _text_keys(self, config: ModelConfig) -> TextKeys:
        if config.text is None:
            raise ConfigError(f"the model has no tower of text: {self.label} has one")
        return self.text.of(config.text, config.vectors and config.vectors.text, config.special)

    def _vision_keys(self, config: ModelConfig) -> VisionKeys:
        if config.vision is None:
            raise ConfigError(f"the model has no tower of vision: {self.label} has one")
        return self.vision.of(config.vision, config.vectors and config.vectors.vision)


def tower_keys(stack: StackConfig) -> dict[str, Any]:
    """The `TowerKeys` of a stack, by name."""
    first = stack.layers[0]
    return {
        **vision.stack_keys(stack),
        "intermediate_size": first.feed_forward.d_hidden,
        "attention_dropout": first.attention.dropout,
    }


def text_keys(stack: StackConfig, special: SpecialTokens) -> dict[str, Any]:
    """The `TextKeys` of a stack, by name."""
    return {
        **tower_keys(stack),
        "vocab_size": stack.tokens.vocab_size,
        "max_position_embeddings": stack.max_length or 1,
        **special_keys(special),
    }


def vision_keys(stack: StackConfig) -> dict[str, Any]:
    """The `VisionKeys` of a stack, by name."""
    return {**tower_keys(stack), **vision.picture_keys(stack)}


def _vision_vectors(keys: VisionKeys, weights: Weights) -> VectorsSpec | None:
    vector = keys.vector(weights)
    return None if vector is None else VectorsSpec(vision=vector)


def _rows(tower: str) -> tuple[Row, ...]:
    """The names of one tower, by ours; those of what only one of them has are in no other's way."""
    theirs, their_layer, our_layer = f"{tower}_model", f"{tower}_model.encoder.layers.{{i}}", f"{tower}.layers.{{i}}"
    parts = (("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "output"))
    embeddings = {
        "text": (row(f"{theirs}.embeddings.token_embedding.weight", "text.embedding.token.weight"),),
        "vision": (
            row(f"{theirs}.embeddings.class_embedding", "vision.embedding.class_tokens", conversion=FIRST_ROW),
            row(f"{theirs}.embeddings.patch_embedding.*", "vision.embedding.patches.*"),
        ),
    }
    return (
        *embeddings[tower],
        row(f"{theirs}.embeddings.position_embedding.weight", f"{tower}.position.weight"),
        *(row(f"{their_layer}.self_attn.{part}.*", f"{our_layer}.attention.{ours}.*") for part, ours in parts),
        row(f"{their_layer}.layer_norm1.*", f"{our_layer}.attention_residual.before.*"),
        row(f"{their_layer}.layer_norm2.*", f"{our_layer}.feed_forward_residual.before.*"),
        row(f"{their_layer}.mlp.fc1.*", f"{our_layer}.feed_forward.input.*"),
        row(f"{their_layer}.mlp.fc2.*", f"{our_layer}.feed_forward.output.*"),
        row(f"{theirs}.{'final_layer_norm' if tower == 'text' else 'post_layernorm'}.*", f"{tower}.final_norm.*"),
    )


def _text_sizes(weights: Weights) -> Mapping[str, object]:
    """What the shapes of a text tower alone tell."""
    table = "text_model.embeddings.token_embedding.weight"
    return {
        **_sizes(weights, "text_model"),
        "vocab_size": weights.size(table, 0),
        "hidden_size": weights.size(table, 1),
        "max_position_embeddings": weights.size("text_model.embeddings.position_embedding.weight", 0),
    }


def _vision_sizes(weights: Weights) -> Mapping[str, object]:
    """What the shapes of a vision tower alone tell; images are taken to be square, as their patches."""
    theirs = "vision_model.embeddings"
    patches = f"{theirs}.patch_embedding.weight"
    patch, n_positions = weights.size(patches, 2), weights.size(f"{theirs}.position_embedding.weight", 0)
    n_patches = (n_positions or 0) - (f"{theirs}.class_embedding" in weights)
    side = round(max(n_patches, 0) ** 0.5)
    return {
        **_sizes(weights, "vision_model"),
        "hidden_size": weights.size(patches, 0),
        "num_channels": weights.size(patches, 1),
        "patch_size": patch,
        "image_size": side * patch if side and patch else None,
    }


def _sizes(weights: Weights, theirs: str) -> Mapping[str, object]:
    fc1 = f"{theirs}.encoder.layers.{{i}}.mlp.fc1.weight"
    return {
        "num_hidden_layers": weights.n_layers(fc1) or None,
        "intermediate_size": weights.size(fc1.format(i=0), 0),
    }
