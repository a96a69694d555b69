"""Names of what a forward pass computes: one dotted name addresses any activation of any layer.

Attention sites are addressed by name, layer and head (`decoder.self`, 3, 5). Activations by
`<stack>.<layer>.<activation>` (`decoder.3.residual_after`), or by name alone where there is one a model (`logits`).
Those of the attention that pools a tower, which has one layer, begin with "pool_" (`vision.0.pool_query`).
Shape letters: N queries, M keys, H heads, K key heads, D head size, C model width, F feed-forward width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

ATTENTION_SITES: dict[str, str] = {
    "encoder.self": "encoder self-attention",
    "decoder.self": "decoder self-attention",
    "decoder.cross": "decoder-to-encoder cross-attention",
    "text.self": "self-attention of the text tower",
    "vision.self": "self-attention of the vision tower",
    "text.pool": "attention that pools the text tower",
    "vision.pool": "attention that pools the vision tower",
}


@dataclass(frozen=True, kw_only=True)
class ActivationSite:
    """One kind of activation: its key, the letters of its shape, and what people call it."""

    key: str
    shape: str
    label: str


LAYER_ACTIVATIONS: dict[str, ActivationSite] = {
    site.key: site
    for site in (
        ActivationSite(key="residual_before", shape="NC", label="residual stream before the layer"),
        ActivationSite(key="query", shape="HND", label="queries, rotated if the model rotates them"),
        ActivationSite(key="key", shape="KMD", label="keys, rotated if the model rotates them"),
        ActivationSite(key="value", shape="KMD", label="values"),
        ActivationSite(
            key="head_output", shape="HND", label="weighted values of each head, before the output projection"
        ),
        ActivationSite(key="attention_output", shape="NC", label="what attention adds to the residual stream"),
        ActivationSite(key="cross_query", shape="HND", label="queries of cross-attention"),
        ActivationSite(key="cross_key", shape="KMD", label="keys of cross-attention, from the encoder"),
        ActivationSite(key="cross_value", shape="KMD", label="values of cross-attention, from the encoder"),
        ActivationSite(key="cross_head_output", shape="HND", label="weighted values of each cross-attention head"),
        ActivationSite(key="cross_output", shape="NC", label="what cross-attention adds to the residual stream"),
        ActivationSite(key="feed_forward_hidden", shape="NF", label="feed-forward activations"),
        ActivationSite(key="feed_forward_output", shape="NC", label="what feed-forward adds to the residual stream"),
        ActivationSite(key="residual_after", shape="NC", label="residual stream after the layer"),
    )
}
STACK_ACTIVATIONS: dict[str, ActivationSite] = {
    site.key: site
    for site in (
        ActivationSite(key="embedding", shape="NC", label="what the layers read: embeddings with positions"),
        ActivationSite(key="final_hidden", shape="NC", label="hidden states after the final norm"),
    )
}
MODEL_ACTIVATIONS: dict[str, ActivationSite] = {
    "logits": ActivationSite(key="logits", shape="NV", label="scores of every output at every position"),
}


def attention_activation(site: str, layer: int, activation: str) -> str:
    """The full name of an activation of one attention: of "decoder.cross", 3, "query" it is "decoder.3.cross_query"."""
    stack, _, kind = site.partition(".")
    return layer_site(stack, layer, activation if kind == "self" else f"{kind}_{activation}")


def layer_site(stack: str, layer: int, activation: str) -> str:
    """The full name of one layer's activation: layer_site("decoder", 3, "query") is "decoder.3.query"."""
    return f"{stack}.{layer}.{activation}"
