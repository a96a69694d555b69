"""The weights of one attention head, and what they do together.

Shape letters: D head size, C width of the stream the head reads and writes, M width of the stream its keys come from.
A head reads queries W_Q x [D], keys W_K y [D] and values W_V y [D], and writes W_O [C, D] times what it gathered. Its
QK circuit W_Q^T W_K [C, M] says which x looks at which y; its OV circuit W_O W_V [C, M] what a y that is looked at
becomes (Elhage et al. 2021, A Mathematical Framework for Transformer Circuits). Biases, norms and rotations are left
out.
"""

from __future__ import annotations

from collections.abc import Callable

from core_model.config import ModelConfig
from core_model.errors import TraceError
from core_model.pieces import HeldArray, PiecewiseArray, Product
from core_model.results import FloatArray, HeadPart

WeightReader = Callable[[str], FloatArray]
"""The weight of that name of ours, in its shape."""


def head_weights(
    read: WeightReader, config: ModelConfig, site: str, layer: int, head: int, part: HeadPart
) -> PiecewiseArray:
    """One of a head's maps or circuits; `read` gives the weights it needs. TraceError for a head there is not."""
    specs = config.attention_layers().get(site, ())
    if not (0 <= layer < len(specs) and 0 <= head < specs[layer].n_heads):
        raise TraceError(f"The model has no {site} layer {layer} head {head}")
    spec = specs[layer]
    stack, _, kind = site.partition(".")
    if kind == "cross":  # layers of the site are those that have it
        layer = [i for i, one in enumerate(config.stacks[stack].layers) if one.cross_attention is not None][layer]
    layers = f"{stack}.layers.{config.stacks[stack].weights_index(layer)}"
    place = f"vectors.{stack}.pool" if kind == "pool" else layers
    attention = f"{place}.{'cross_attention' if kind == 'cross' else 'attention'}"
    key_head = head // (spec.n_heads // spec.n_key_heads)
    own, shared = (slice(one * spec.head_size, (one + 1) * spec.head_size) for one in (head, key_head))

    def cut(name: HeadPart) -> FloatArray:
        weight = read(f"{attention}.{name}.weight")
        if name == "output":
            return weight[:, own].copy()
        return weight[own if name == "query" else shared].copy()

    if part == "qk":
        return Product(cut("query").T, cut("key"))
    if part == "ov":
        return Product(cut("output"), cut("value"))
    return HeldArray(cut(part))
