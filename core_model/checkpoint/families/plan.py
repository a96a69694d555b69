"""A stack in our words, whatever config.json calls things: read by the `places` of its family, and written by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from core_model.checkpoint.families.fields import activation, activation_name, class_names, equal_heads, special_keys
from core_model.config import (
    Activation,
    AttentionSpec,
    FeedForwardSpec,
    LayerSpec,
    MaskSpec,
    ModelConfig,
    NormSpec,
    RelativePositions,
    ResidualSpec,
    RotaryPositions,
    StackConfig,
    TokenEmbedding,
)
from core_model.errors import ConfigError

CAUSAL = MaskSpec(causal=True)
USUAL_PLACES = {
    "n_layers": "num_hidden_layers",
    "n_heads": "num_attention_heads",
    "d_model": "hidden_size",
    "d_hidden": "intermediate_size",
    "vocab_size": "vocab_size",
    "max_length": "max_position_embeddings",
}
"""What most families call these facts."""
_DROPOUTS = ("embedding_dropout", "attention_dropout", "residual_dropout")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a stack has everywhere, and its parts made of that: a family says where one of them differs.

    `norm` stands before attention, before the feed-forward and at the end; with `post_norm` after both sums instead.
    `mask` is what tokens see, `bias` whether linear maps have one. The `changes` that its methods take are fields of
    what they make.
    """

    vocab_size: int
    d_model: int
    n_layers: int
    n_heads: int
    n_key_heads: int
    head_size: int
    d_hidden: int
    activation: Activation
    norm: NormSpec
    d_embedding: int
    n_types: int = 0
    position: RelativePositions | None = None
    mask: MaskSpec = CAUSAL
    post_norm: bool = False
    bias: bool = True
    gated: bool = False
    embedding_dropout: float = 0.0
    attention_dropout: float = 0.0
    residual_dropout: float = 0.0

    def embedding(self, **changes: Any) -> TokenEmbedding:
        """The token vectors."""
        settings = {
            "d_embedding": self.d_embedding,
            "n_types": self.n_types,
            "dropout": self.embedding_dropout,
            **changes,
        }
        return TokenEmbedding(vocab_size=self.vocab_size, **settings)

    def attention(self, *, bias: bool | None = None, output_bias: bool | None = None, **changes: Any) -> AttentionSpec:
        """Attention; its maps have a `bias` as all do unless said, and so has the last of them."""
        bias = self.bias if bias is None else bias
        settings = {
            "n_key_heads": self.n_key_heads,
            "head_size": self.head_size,
            "scale": self.head_size**-0.5,
            "mask": self.mask,
            "position": self.position,
            "query_bias": bias,
            "key_bias": bias,
            "value_bias": bias,
            "output_bias": bias if output_bias is None else output_bias,
            "dropout": self.attention_dropout,
            **changes,
        }
        return AttentionSpec(n_heads=self.n_heads, **settings)

    def feed_forward(self, **changes: Any) -> FeedForwardSpec:
        """The feed-forward."""
        settings = {
            "d_hidden": self.d_hidden,
            "activation": self.activation,
            "gated": self.gated,
            "bias": self.bias,
            **changes,
        }
        return FeedForwardSpec(**settings)

    def residual(self, **changes: Any) -> ResidualSpec:
        """How attention and feed-forward each join the residual stream."""
        place = "total" if self.post_norm else "before"
        return ResidualSpec(**{place: self.norm, "dropout": self.residual_dropout, **changes})

    def layer(self, *, residual: ResidualSpec | None = None, **changes: Any) -> LayerSpec:
        """A layer; `residual` is that of both its parts."""
        residual = residual or self.residual()
        settings = {
            "attention": self.attention(),
            "attention_residual": residual,
            "feed_forward": self.feed_forward(),
            "feed_forward_residual": residual,
            **changes,
        }
        return LayerSpec(**settings)

    def stack(self, layers: Iterable[LayerSpec], **changes: Any) -> StackConfig:
        """The stack of these layers."""
        final_norm = None if self.post_norm else self.norm
        settings = {"embedding": self.embedding(), "final_norm": final_norm, **changes}
        return StackConfig(d_model=self.d_model, layers=tuple(layers), **settings)


def side_by_side(layer: LayerSpec) -> LayerSpec:
    """The layer with its feed-forward beside the attention, both behind the norm of the attention (GPT-J)."""
    second = replace(layer.feed_forward_residual, before=None)
    return replace(layer, feed_forward_residual=second, parallel=True, shared_norm=True)


def read_plan(keys: object, places: Mapping[str, str], **changes: Any) -> Plan:
    """The plan of a config whose keys are called as `places` says. `changes` are fields of it that win over the keys.

    ConfigError when heads cannot share the width equally, or key heads cannot serve as many query heads each.
    """

    def stated(fact: str, usual: Any = None) -> Any:
        return getattr(keys, places[fact]) if fact in places else usual

    n_heads, d_model = stated("n_heads"), stated("d_model")
    settings = {
        "vocab_size": stated("vocab_size"),
        "d_model": d_model,
        "n_layers": stated("n_layers"),
        "n_heads": n_heads,
        "n_key_heads": stated("n_key_heads") or n_heads,
        "head_size": stated("head_size") or equal_heads(keys, places["d_model"], places["n_heads"]),
        "d_hidden": stated("d_hidden") or 4 * d_model,
        "d_embedding": stated("d_embedding") or d_model,
        "n_types": stated("n_types", 0),
        "norm": NormSpec(eps=stated("eps", NormSpec().eps)),
        **({"activation": activation(places["activation"], stated("activation"))} if "activation" in places else {}),
        **{fact: stated(fact) or 0.0 for fact in _DROPOUTS},
        **changes,
    }
    if n_heads % settings["n_key_heads"]:
        raise ConfigError(
            f"{places['n_key_heads']} is {settings['n_key_heads']} in config.json: it must divide "
            f"{places['n_heads']}, {n_heads}"
        )
    return Plan(**settings)


_WRITTEN: Mapping[str, Callable[[StackConfig], Any]] = {
    "vocab_size": lambda stack: stack.tokens.vocab_size,
    "d_model": lambda stack: stack.d_model,
    "n_layers": lambda stack: stack.n_layers,
    "n_heads": lambda stack: stack.layers[0].attention.n_heads,
    "n_key_heads": lambda stack: stack.layers[0].attention.n_key_heads,
    "head_size": lambda stack: stack.layers[0].attention.head_size,
    "d_hidden": lambda stack: stack.layers[0].feed_forward.d_hidden,
    "d_embedding": lambda stack: stack.tokens.d_embedding,
    "n_types": lambda stack: stack.tokens.n_types,
    "activation": lambda stack: activation_name(stack.layers[0].feed_forward.activation),
    "eps": lambda stack: usual_norm(stack).eps,
    "max_length": lambda stack: stack.max_length or _unstretched(stack) or 2048,  # else there is no last position
    "embedding_dropout": lambda stack: stack.tokens.dropout,
    "attention_dropout": lambda stack: stack.layers[0].attention.dropout,
    "residual_dropout": lambda stack: stack.layers[0].attention_residual.dropout,
}


def write_stack(stack: StackConfig, places: Mapping[str, str]) -> dict[str, Any]:
    """The keys that `places` names, of the first layer where layers differ; what `read_plan` reads."""
    return {key: _WRITTEN[fact](stack) for fact, key in places.items()}


def write_keys(config: ModelConfig, places: Mapping[str, str]) -> dict[str, Any]:
    """The keys of a model, by name: those that `places` names and those of `TextKeys`."""
    return {
        **write_stack(config.output_stack, places),
        "tie_word_embeddings": bool(config.head and config.head.tied),
        "id2label": class_names(config.head),
        **special_keys(config.special),
    }


def _unstretched(stack: StackConfig) -> int:
    """The length that stretched rotary positions were made for; 0 where there are none."""
    positions = (layer.attention.position for layer in stack.layers)
    scaled = (position.scaling for position in positions if isinstance(position, RotaryPositions))
    return next((scaling.original_length for scaling in scaled if scaling), 0)


def usual_norm(stack: StackConfig) -> NormSpec:
    """The norm that stands everywhere in a stack, as its end or else its first layer has it."""
    residual = stack.layers[0].attention_residual
    return stack.final_norm or residual.before or residual.total or NormSpec()
