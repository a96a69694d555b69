"""Attention sites by the names people read."""

from __future__ import annotations

from core_model.sites import ATTENTION_SITES

_SHORT = {"decoder.cross": "Cross-attention"}
"""Where the axes beside it say the rest."""


def site_name(site: str) -> str:
    """ "decoder.self" is "Decoder self-attention"; a site without a name keeps its key."""
    return _SHORT.get(site) or ATTENTION_SITES.get(site, site).capitalize()
