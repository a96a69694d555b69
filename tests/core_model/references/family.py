"""What a hand-made copy of a transformers model consists of, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from core_model.config import FeedForwardSpec, LayerSpec, MaskSpec, ModelConfig, NormSpec, ResidualSpec
from core_model.nn.transformer import Transformer
from tests.core_model.attention_cases import fill

D, HEADS, FF, VOCAB, LAYERS, LENGTH = 24, 4, 40, 31, 3, 64
CAUSAL = MaskSpec(causal=True)
NO_BIAS = {"query_bias": False, "key_bias": False, "value_bias": False, "output_bias": False}
RMS = NormSpec(kind="rms", eps=1e-6)

Weights = dict[str, torch.Tensor]


@dataclass(frozen=True, kw_only=True)
class Family:
    """Their model, our config, and where each of our weights comes from; `gain` keeps attention from being flat."""

    theirs: Callable[[], PreTrainedModel]
    config: ModelConfig
    copied: Callable[[Weights], Weights]
    gain: float = 1.5

    def models(self) -> tuple[PreTrainedModel, Transformer]:
        reference = self.theirs().eval()
        fill(reference, seed=0, gain=self.gain)
        ours = Transformer(self.config).eval()
        ours.load_state_dict(self.copied(reference.state_dict()))
        return reference, ours


def eager(model_class, config) -> Callable[[], PreTrainedModel]:
    return lambda: model_class._from_config(config, attn_implementation="eager")


def linear(theirs: Weights, source: str, target: str) -> Weights:
    """The weight, and the bias if there is one, under another name."""
    ends = [end for end in ("weight", "bias") if f"{source}.{end}" in theirs]
    return {f"{target}.{end}": theirs[f"{source}.{end}"] for end in ends}


def renamed(theirs: Weights, table: dict[str, str]) -> Weights:
    """`linear` for a whole table; {i} stands for each layer."""
    ours: Weights = {}
    for source, target in table.items():
        for i in range(LAYERS) if "{i}" in source else (0,):
            ours |= linear(theirs, source.format(i=i), target.format(i=i))
    return ours


def pre_norm_layer(norm: NormSpec, feed_forward: FeedForwardSpec, **options) -> LayerSpec:
    residual = ResidualSpec(before=norm)
    return LayerSpec(
        attention_residual=residual,
        cross_residual=residual,
        feed_forward_residual=residual,
        feed_forward=feed_forward,
        **options,
    )
