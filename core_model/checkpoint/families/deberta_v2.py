"""DeBERTa-v2 and v3 (He et al. 2021, 2023): distances on a logarithmic scale, a convolution beside the first layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from core_model.checkpoint.families import encoders
from core_model.checkpoint.families.deberta import (
    HEADS,
    SIZES,
    DebertaKeys,
    deberta_names,
    deberta_plan,
    deberta_stack,
    further_keys,
    tied_as_stored,
)
from core_model.checkpoint.families.family import row
from core_model.checkpoint.families.fields import Count, CountOrNone, activation, activation_name
from core_model.checkpoint.families.plan import Plan
from core_model.config import ConvolutionSpec, DisentangledPositions, DistanceTable, ModelConfig, StackConfig
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


def _read(keys: DebertaV2Keys) -> StackConfig:
    max_distance = keys.farthest if keys.position_buckets > 0 else None
    plan = deberta_plan(keys, keys.span, max_distance=max_distance, shared_maps=keys.share_att_key)
    if keys.attention_head_size not in (None, plan.head_size):
        raise ConfigError(
            f"attention_head_size is {keys.attention_head_size} in config.json: all heads together must be as wide as "
            f"hidden_size, so it must be {plan.head_size}"
        )
    distances = DistanceTable(n_rows=2 * keys.span, norm=plan.norm if keys.is_normed else None)
    return deberta_stack(keys, plan, distances, convolution=_read_convolution(keys, plan))


def _read_convolution(keys: DebertaV2Keys, plan: Plan) -> ConvolutionSpec | None:
    if not keys.conv_kernel_size:
        return None
    return ConvolutionSpec(
        kernel_size=keys.conv_kernel_size,
        activation=activation("conv_act", keys.conv_act),
        norm=plan.norm,
        n_groups=keys.conv_groups,
    )


def _further_keys(config: ModelConfig) -> dict[str, Any]:
    stack = config.output_stack
    position, distances, convolution = stack.layers[0].attention.position, stack.distances, stack.convolution
    keys = further_keys(config)
    if isinstance(position, DisentangledPositions):
        keys["max_relative_positions"] = position.max_distance or position.span
        keys["position_buckets"] = position.span if position.max_distance is not None else -1
        keys["share_att_key"] = position.shared_maps
    if convolution is not None:
        keys["conv_kernel_size"] = convolution.kernel_size
        keys["conv_act"] = activation_name(convolution.activation)
        keys["conv_groups"] = convolution.n_groups
    keys["norm_rel_ebd"] = _NORMED if distances is not None and distances.norm is not None else "none"
    return keys


FAMILY = encoders.encoder_family(
    HEADS,
    _read,
    _further_keys,
    finish=tied_as_stored,
    key="deberta_v2",
    label="DeBERTa-v2",
    model_types=("deberta-v2",),
    architectures=encoders.architectures("DebertaV2", ForMultipleChoice="sequence_classes"),
    keys=DebertaV2Keys,
    sizes=SIZES,
    names=deberta_names(
        row("encoder.LayerNorm.*", "encoder.distance_norm.*"),
        row("encoder.conv.conv.*", "encoder.convolution.mix.*"),
        row("encoder.conv.LayerNorm.*", "encoder.convolution.norm.*"),
        *encoders.encoder_rows(
            {
                "attention.self.query_proj.*": "attention.query.*",
                "attention.self.key_proj.*": "attention.key.*",
                "attention.self.value_proj.*": "attention.value.*",
                "attention.self.pos_key_proj.*": "attention.distance_key.*",
                "attention.self.pos_query_proj.*": "attention.distance_query.*",
            }
        ),
    ),
    markers=(r"(deberta\.)?encoder\.layer\.0\.attention\.self\.query_proj\.weight",),
)
