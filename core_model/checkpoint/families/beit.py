"""BEiT (Bao et al. 2022) and data2vec-vision (Baevski et al. 2022): ViT with a learned score bias for each step between
patches, keys without bias, and learned residual scales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from core_model.checkpoint.families import vision
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count
from core_model.config import GridPositions, HeadSpec, LayerSpec, ModelConfig
from core_model.errors import ConfigError

_TABLE = "relative_position_bias.relative_position_bias_table"
_SHARED_TABLE = f"encoder.{_TABLE}"
_POSITIONS = "embeddings.position_embeddings"
_OWN_TABLE = f"encoder.layer.{{i}}.attention.attention.{_TABLE}"


@dataclass(frozen=True, kw_only=True)
class BeitKeys(vision.VisionKeys):
    """BEiT's own keys beside those all have; `vocab_size` is of the codes that masked patches are guessed as."""

    intermediate_size: Count
    vocab_size: Count = 8192
    use_absolute_position_embeddings: bool = False
    use_relative_position_bias: bool = False
    use_shared_relative_position_bias: bool = False
    use_mean_pooling: bool = True
    layer_scale_init_value: float = 0.1


def _read_as(family: Family, keys: BeitKeys, weights: Weights) -> ModelConfig:
    patches = keys.patches()
    has_scales = keys.layer_scale_init_value > 0
    layer = vision.layer(keys, vision.feed_forward(keys, keys.intermediate_size), learned_scale=has_scales)
    layer = replace(layer, attention=replace(layer.attention, key_bias=False))
    encoder = vision.encoder(keys, patches, layer)
    encoder = replace(
        encoder,
        layers=tuple(_with_steps(keys, patches.grid, layer, index) for index in range(keys.num_hidden_layers)),
        position=encoder.position if keys.use_absolute_position_embeddings else None,
        final_norm=None if keys.use_mean_pooling else keys.norm,
    )
    return ModelConfig(encoder=encoder, head=_head(family, keys, weights))


def _with_steps(keys: BeitKeys, grid: tuple[int, int], layer: LayerSpec, index: int) -> LayerSpec:
    """The layer of that number: with a table of biases of its own, or the first layer's."""
    own, shared = keys.use_relative_position_bias, keys.use_shared_relative_position_bias
    if own and shared:
        raise ConfigError(
            "use_relative_position_bias and use_shared_relative_position_bias are both true in config.json: "
            "a layer has one table of biases here, its own or the shared one"
        )
    if not own and not shared:
        return layer
    position = GridPositions(grid=grid, from_layer=0 if shared and index else None)
    return replace(layer, attention=replace(layer.attention, position=position))


def _head(family: Family, keys: BeitKeys, weights: Weights) -> HeadSpec | None:
    """Codes of the patches, or classes: of the normed mean of the patches, or of the class token."""
    if weights.task(family, {"image_tokens": "lm_head.weight"}) == "image_tokens":
        return HeadSpec(
            n_outputs=weights.size("lm_head.weight", 0) or keys.vocab_size,
            task="image_tokens",
            pooling="patches",
            norm=keys.norm,
            bias=True,
        )
    pooling = "mean_patches" if keys.use_mean_pooling else "first"
    head = vision.classifier(family, keys, weights, pooling=pooling)
    return replace(head, norm=keys.norm) if head is not None and keys.use_mean_pooling else head


def _write_as(family: Family, config: ModelConfig) -> Foreign:
    stack = config.output_stack
    common = vision.common_keys(config)
    positions = [layer.attention.position for layer in stack.layers]
    has_table = isinstance(positions[0], GridPositions)
    is_shared = has_table and any(isinstance(one, GridPositions) and one.from_layer == 0 for one in positions)
    guesses = config.head is not None and config.head.task == "image_tokens"
    keys = BeitKeys(
        **common,
        intermediate_size=stack.layers[0].feed_forward.d_hidden,
        vocab_size=config.head.n_outputs if config.head is not None and guesses else 8192,
        use_absolute_position_embeddings=stack.position is not None,
        use_relative_position_bias=has_table and not is_shared,
        use_shared_relative_position_bias=is_shared,
        use_mean_pooling=stack.final_norm is None,
        layer_scale_init_value=0.1 if stack.layers[0].attention_residual.learned_scale else 0.0,
    )
    return vision.foreign(family, keys, config)


def _rows(config: ModelConfig, final_norm: str) -> tuple[Row, ...]:
    """All tensors; `final_norm` is the name of the encoder's last norm."""
    theirs, ours = "encoder.layer.{i}", "encoder.layers.{i}"
    guesses = config.head is not None and config.head.task == "image_tokens"
    return (
        vision.class_token_row(),
        *vision.embedding_rows(),
        *vision.bert_layer_rows(),
        row(f"{theirs}.lambda_1", f"{ours}.attention_residual.learned_scale"),
        row(f"{theirs}.lambda_2", f"{ours}.feed_forward_residual.learned_scale"),
        _table_row(config),
        row(f"{final_norm}.*", "encoder.final_norm.*"),
        row("layernorm.*" if guesses else "pooler.layernorm.*", "head.norm.*"),
        row("lm_head.*" if guesses else "classifier.*", "head.output.*"),
    )


def _table_row(config: ModelConfig) -> Row:
    """The table of each layer, or that of all: of a lone layer it may be called either."""
    ours = "encoder.layers.{i}.attention.position_bias.weight"
    stack = config.output_stack
    position = stack.layers[-1].attention.position
    if isinstance(position, GridPositions) and position.from_layer is not None:
        return row(_SHARED_TABLE, ours)
    return row(_OWN_TABLE, ours, also=(_SHARED_TABLE,) if stack.n_layers == 1 else ())


def _names(prefix: str) -> NameTable:
    """The names of a family. `layernorm` is the last norm of a file without a head, but of another's its head's."""
    prefixed = f"{prefix}.layernorm"
    return NameTable(
        rows=lambda config: _rows(config, "layernorm" if config.head is None else prefixed),
        dialects=((rf"^{prefix}\.layernorm\.", partial(_rows, final_norm=prefixed)),),
        spellings=((rf"^{prefix}\.(?!layernorm\.)", ""),),
        written_prefixes=dict.fromkeys(("image_classes", "image_tokens"), f"{prefix}."),
        roots=("classifier.", "lm_head.", "layernorm.", f"{prefixed}."),
        buffers=(r".*\.relative_position_index",),
        unused=(
            r"embeddings\.mask_token",
            r"pooler\.layernorm\..*",
            r"(classifier|lm_head|decode_head|auxiliary_head|fpn\d)\..*",
        ),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    own_table = _OWN_TABLE.format(i=0)
    n_buckets = weights.size(_SHARED_TABLE if _SHARED_TABLE in weights else own_table, 0)
    sizes: dict[str, Any] = {**vision.sizes(weights)}
    if sizes["image_size"] is None and n_buckets and sizes["patch_size"]:
        sizes["image_size"] = (round((n_buckets - 3) ** 0.5) + 1) // 2 * sizes["patch_size"]
    return {
        **sizes,
        "intermediate_size": weights.size(vision.FIRST_MAP, 0),
        "layer_scale_init_value": 0.1 if "encoder.layer.0.lambda_1" in weights else 0.0,
    }


def _last_norm(weights: Weights, prefix: str) -> str:
    has_head = "classifier.weight" in weights or "lm_head.weight" in weights
    return f"{prefix}.layernorm.weight" if has_head else "layernorm.weight"


def _implied(stated: Mapping[str, object], weights: Weights, *, prefix: str) -> Mapping[str, object]:
    """What positions and norm a model without a config has. A config that does not name them has the library's default,
    whatever is stored."""
    if stated:
        return {}
    return {
        "use_mean_pooling": _last_norm(weights, prefix) not in weights,
        "use_absolute_position_embeddings": _POSITIONS in weights,
        "use_relative_position_bias": _OWN_TABLE.format(i=0) in weights,
        "use_shared_relative_position_bias": _SHARED_TABLE in weights,
    }


def _left_out(keys: BeitKeys) -> tuple[str, ...]:
    """The tables that a file may have and the keys leave out."""
    return (
        *(() if keys.use_relative_position_bias else (_OWN_TABLE.replace("{i}", r"\d+"),)),
        *(() if keys.use_shared_relative_position_bias else (_SHARED_TABLE,)),
    )


def _remarks(keys: BeitKeys, weights: Weights, config: ModelConfig, *, prefix: str) -> tuple[str, ...]:
    told: list[str] = []
    uses = {
        "use_relative_position_bias": _OWN_TABLE.format(i=0),
        "use_shared_relative_position_bias": _SHARED_TABLE,
        "use_absolute_position_embeddings": _POSITIONS,
    }
    for key, table in uses.items():
        if table in weights and not getattr(keys, key):
            told.append(f"{key} is false in config.json, or absent, which means the same: {table} stays unused")
    if keys.use_mean_pooling and (norm := _last_norm(weights, prefix)) in weights:
        told.append(f"use_mean_pooling is true in config.json, or absent, which means the same: {norm} stays unused")
    grid = keys.patches().grid
    if (keys.use_relative_position_bias or keys.use_shared_relative_position_bias) and grid[0] != grid[1]:
        told.append(
            f"the patches are {grid[0]} rows of {grid[1]}: transformers mixes up the biases of relative steps where "
            "a picture is not square; here each step of rows and columns has its own"
        )
    if config.head is not None and config.head.task == "image_tokens" and not keys.use_mean_pooling:
        told.append(
            "use_mean_pooling is false in config.json: transformers exchanges the norms of encoder and head when it "
            "reads this file; here each is used as stored"
        )
    return tuple(told)


def _family(
    key: str, label: str, *, model_type: str, architectures: Mapping[str, str | None], first_scale: str
) -> Family:
    """A family of this architecture, whose key is also the prefix of its names; `first_scale` marks it."""
    family = Family(
        key=key,
        label=label,
        model_types=(model_type,),
        architectures=architectures,
        keys=BeitKeys,
        read=lambda keys, weights: _read_as(family, keys, weights),
        write=lambda config: _write_as(family, config),
        sizes=_sizes,
        implied=partial(_implied, prefix=key),
        left_out=_left_out,
        remarks=partial(_remarks, prefix=key),
        places={**vision.PLACES, "d_hidden": "intermediate_size"},
        names=_names(key),
        markers=(first_scale, vision.QUERY),
    )
    return family


FAMILY = _family(
    "beit",
    "BEiT",
    model_type="beit",
    architectures={
        "BeitModel": None,
        "BeitForImageClassification": "image_classes",
        "BeitForMaskedImageModeling": "image_tokens",
        "BeitForSemanticSegmentation": None,
        "BeitBackbone": None,
    },
    first_scale=r"(beit\.)?encoder\.layer\.0\.lambda_1",
)
DATA2VEC = _family(
    "data2vec_vision",
    "data2vec-vision",
    model_type="data2vec-vision",
    architectures={
        "Data2VecVisionModel": None,
        "Data2VecVisionForImageClassification": "image_classes",
        "Data2VecVisionForSemanticSegmentation": None,
    },
    first_scale=r"data2vec_vision\.encoder\.layer\.0\.lambda_1",
)
