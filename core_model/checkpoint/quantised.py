"""Telling quantised weights, which attention cannot be computed from here, from plain ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from core_model.checkpoint.wording import counted, shown

_SIGNS = (
    ".qweight",
    ".qzeros",
    ".g_idx",
    ".absmax",
    ".quant_map",
    ".SCB",
    ".weight_scale",
    ".weight_scale_inv",
    ".weight_format",
    ".qscale_weight",
    ".input_scale",
    "_proj_blocks",
    "_proj_scales",
)


def stated_method(document: Mapping[str, Any]) -> str | None:
    """The quantisation a config.json names, e.g. "gptq"; None when it names none."""
    described = document.get("quantization_config")
    if not isinstance(described, Mapping):
        return None
    return shown(described.get("quant_method", "an unnamed method"))


def quantised_weights(document: Mapping[str, Any], names: Collection[str]) -> str | None:
    """A sentence that says how these tensors are quantised; None for plain weights."""
    signs = [name for name in names if name.endswith(_SIGNS)]
    if not signs:
        return None
    method = stated_method(document)
    by_method = f" by {method}" if method else ""
    return (
        f"the weights are quantised{by_method} ({counted(len(signs), 'tensor')} such as {shown(signs[0])}): "
        "attention needs the floating-point weights, open the model they were made from"
    )
