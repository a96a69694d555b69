"""DeBERTa-v2 and v3 (He et al. 2021, 2023): distances on a logarithmic scale, a convolution beside the first layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.deberta import (
    HEADS,
    DebertaKeys,
    common_keys,
    disentangled,
    name_table,
    read_head,
    require_readable,
    scaled_layer,
    sizes,
    stack_of,
)
from core_model.checkpoint.families.family import Family, Foreign, Row, Weights, row
from core_model.checkpoint.families.fields import Count, CountOrNone, activation, activation_name
from core_model.config import ConvolutionSpec, DisentangledPositions, DistanceTable, ModelConfig
from core_model.errors import ConfigError

_NORMED = "layer_norm"


@dataclass(frozen=True, kw_only=True)
class DebertaV2Keys(DebertaKeys):
    """The keys of config.json that decide what is computed."""

    position_buckets: int = -1
    norm_rel_ebd: str = "none"
    share_att_key: bool = False
    attention_head_size: Count | None = None
    conv_kernel_size: CountOrNone = 0
    conv_act: str = "tanh"
    conv_groups: Count = 1

    @property
    def span(self) -> int:
        """How many distances, or groups of them, there are to each side."""
        return self.position_buckets if self.position_buckets > 0 else self.farthest

    @property
    def is_normed(self) -> bool:
        """Whether the vectors of distances are normed."""
        return _NORMED in [part.strip() for part in self.norm_rel_ebd.lower().split("|")]


def _read(keys: DebertaV2Keys, weights: Weights) -> ModelConfig:
    head_size = require_readable(keys)
    if keys.attention_head_size not in (None, head_size):
        raise ConfigError(
            f"attention_head_size is {keys.attention_head_size} in config.json: all heads together must be as wide as "
            f"hidden_size, so it must be {head_size}"
        )
    position = disentangled(
        keys,
        keys.span,
        max_distance=keys.farthest if keys.position_buckets > 0 else None,
        shared_maps=keys.share_att_key,
    )
    encoder = stack_of(
        keys,
        scaled_layer(keys, head_size, position),
        DistanceTable(n_rows=2 * keys.span, norm=keys.norm if keys.is_normed else None),
    )
    if keys.conv_kernel_size:
        convolution = ConvolutionSpec(
            kernel_size=keys.conv_kernel_size,
            activation=activation("conv_act", keys.conv_act),
            norm=keys.norm,
            n_groups=keys.conv_groups,
        )
        encoder = replace(encoder, convolution=convolution)
    return ModelConfig(encoder=encoder, head=read_head(FAMILY, keys, weights), special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    stack = config.output_stack
    position, distances, convolution = stack.layers[0].attention.position, stack.distances, stack.convolution
    keys: dict[str, Any] = {}
    if isinstance(position, DisentangledPositions):
        has_buckets = position.max_distance is not None
        keys["max_relative_positions"] = position.max_distance or position.span
        keys["position_buckets"] = position.span if has_buckets else -1
        keys["share_att_key"] = position.shared_maps
    elif distances is not None:
        keys["max_relative_positions"] = distances.n_rows // 2
    if convolution is not None:
        keys["conv_kernel_size"] = convolution.kernel_size
        keys["conv_act"] = activation_name(convolution.activation)
        keys["conv_groups"] = convolution.n_groups
    keys["norm_rel_ebd"] = _NORMED if distances is not None and distances.norm is not None else "none"
    return encoders.foreign(FAMILY, DebertaV2Keys(**common_keys(config), **keys), config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "encoder.layer.{i}.attention", "encoder.layers.{i}"
    return (
        *HEADS.rows(config.head),
        *encoders.embedding_rows(),
        row("encoder.rel_embeddings.weight", "encoder.distance.weight"),
        row("encoder.LayerNorm.*", "encoder.distance_norm.*"),
        row("encoder.conv.conv.*", "encoder.convolution.mix.*"),
        row("encoder.conv.LayerNorm.*", "encoder.convolution.norm.*"),
        *(row(f"{theirs}.self.{part}_proj.*", f"{ours}.attention.{part}.*") for part in ("query", "key", "value")),
        row(f"{theirs}.self.pos_key_proj.*", f"{ours}.attention.distance_key.*"),
        row(f"{theirs}.self.pos_query_proj.*", f"{ours}.attention.distance_query.*"),
        row(f"{theirs}.output.dense.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.output.LayerNorm.*", f"{ours}.attention_residual.total.*"),
        *encoders.feed_forward_rows(),
    )


FAMILY = Family(
    key="deberta_v2",
    label="DeBERTa-v2",
    model_types=("deberta-v2",),
    architectures={
        **encoders.architectures("DebertaV2"),
        "DebertaV2ForMultipleChoice": "sequence_classes",
    },
    keys=DebertaV2Keys,
    read=_read,
    write=_write,
    sizes=sizes,
    places=encoders.PLACES,
    names=name_table(_rows),
    markers=(r"(deberta\.)?encoder\.layer\.0\.attention\.self\.query_proj\.weight",),
)
