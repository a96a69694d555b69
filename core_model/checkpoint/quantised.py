"""Telling quantised weights, which attention cannot be computed from here, from plain ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from core_model.wording import counted, shown

_SIGNS = {
    ".g_idx": "GPTQ",
    ".qzeros": "GPTQ or AWQ",
    ".qweight": "GPTQ or AWQ",
    ".absmax": "bitsandbytes",
    ".quant_map": "bitsandbytes",
    ".SCB": "bitsandbytes",
    ".weight_format": "bitsandbytes",
    ".weight_packed": "compressed-tensors",
    ".weight_scale": "fp8 or int8",
    ".weight_scale_inv": "fp8",
    ".input_scale": "fp8",
    ".qscale_weight": "fp8",
    "_proj_blocks": "mxfp4",
    "_proj_scales": "mxfp4",
}
"""Ends of names that only quantised weights have, and the methods that write them, the most telling first."""


def stated_method(document: Mapping[str, Any]) -> str | None:
    """The quantisation a config.json names, e.g. "gptq"; None when it names none."""
    described = document.get("quantization_config")
    if not isinstance(described, Mapping):
        return None
    return shown(described.get("quant_method", "an unnamed method"))


def quantised_weights(document: Mapping[str, Any], names: Collection[str]) -> str | None:
    """A sentence that says how these tensors are quantised; None for plain weights."""
    signs = [name for name in names if name.endswith(tuple(_SIGNS))]
    if not signs:
        return None
    by_sign = next(method for end, method in _SIGNS.items() if any(name.endswith(end) for name in signs))
    return (
        f"the weights are quantised by {stated_method(document) or by_sign} ({counted(len(signs), 'tensor')} such as "
        f"{shown(signs[0])}): attention needs the floating-point weights, open the model they were made from"
    )
