"""What the adapter_config.json of a LoRA adapter says: see `adapter` for the formulas."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from core_model.checkpoint.folder import Location
from core_model.checkpoint.json_text import read_json
from core_model.errors import CheckpointError
from core_model.wording import shown

_MODULE_NAME = re.compile(r"[\w.]+", re.ASCII)
_UNREAD = {
    "use_qalora": "QA-LoRA",
    "lora_bias": "LoRA with biases of its own",
    "target_parameters": "LoRA on bare parameters",
    "layer_replication": "LoRA with repeated layers",
    "alora_invocation_tokens": "activated LoRA",
    "trainable_token_indices": "LoRA with trainable tokens",
}
"""Keys of an adapter_config.json that ask for more than LoRA or DoRA, and what people call it."""
_CHANGED_BASE = ("pissa", "olora", "corda", "loftq")
"""Initialisations that change the base's weights too: what they were changed to is not in the adapter."""


@dataclass(frozen=True, kw_only=True)
class AdapterConfig:
    """What an adapter_config.json says, as far as merging needs it. `alphas` are by the end of a module's name.

    `saved` are the ends of names of modules that are kept whole (modules_to_save).
    """

    alpha: float
    by_root: bool
    transposed: bool
    has_magnitudes: bool
    alphas: Mapping[str, float] = field(default_factory=dict)
    saved: tuple[str, ...] = ()

    def scale(self, module: str, rank: int) -> float:
        """What the product of the two factors of a module is multiplied by."""
        own = (alpha for name, alpha in self.alphas.items() if f".{module}".endswith(f".{name}"))
        return next(own, self.alpha) / (math.sqrt(rank) if self.by_root else rank)

    def saves(self, weight: str) -> bool:
        """Whether the module of a weight is one of those that are trained and stored whole."""
        return any(f".{weight}".endswith(f".{name}.weight") for name in self.saved)


def stated_base(location: Location) -> str | None:
    """The model that an adapter says it belongs to, by name or path."""
    assert location.adapter_config is not None
    base = read_json(location.adapter_config).get("base_model_name_or_path")
    return base if isinstance(base, str) and base else None


def read_config(location: Location, document: Mapping[str, Any]) -> AdapterConfig:
    """The config of LoRA or DoRA; CheckpointError names what else it asks for."""

    def refused(what: str) -> CheckpointError:
        return CheckpointError(
            f"{location.name} is an adapter by {what}: only LoRA and DoRA are merged here; merge it with peft "
            "(merge_and_unload) and open what that saves",
            path=location.adapter_config,
        )

    if (kind := document.get("peft_type", "LORA")) != "LORA":
        raise refused(shown(kind))
    for key, what in _UNREAD.items():
        if document.get(key):
            raise refused(f"{what} ({key})")
    start = document.get("init_lora_weights")
    if isinstance(start, str) and start.lower().startswith(_CHANGED_BASE):
        raise refused(f"{shown(start)}, which changes the base's weights before training")
    alphas = document.get("alpha_pattern") or {}
    if not isinstance(alphas, dict) or not all(map(_MODULE_NAME.fullmatch, alphas)):
        raise refused("an alpha_pattern that is more than names of modules")
    saved = document.get("modules_to_save")
    return AdapterConfig(
        alpha=_number(location, "lora_alpha", document.get("lora_alpha", 8)),
        by_root=document.get("use_rslora") is True,
        transposed=document.get("fan_in_fan_out") is True,
        has_magnitudes=document.get("use_dora") is True,
        alphas={name: _number(location, f"alpha_pattern.{name}", alpha) for name, alpha in alphas.items()},
        saved=tuple(name for name in saved if isinstance(name, str)) if isinstance(saved, list) else (),
    )


def _number(location: Location, key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e9:
        raise CheckpointError(
            f"{shown(key)} is {shown(repr(value))} in adapter_config.json: a number was expected",
            path=location.adapter_config,
        )
    return float(value)
