"""Mistral (Jiang et al. 2023): Llama with a sliding window."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import architectures
from core_model.checkpoint.families.fields import Count
from core_model.checkpoint.families.llama_like import EVERY_TASK, RmsKeys, llama_family, llama_keys, rms_plan
from core_model.config import MaskSpec, ModelConfig, StackConfig


@dataclass(frozen=True, kw_only=True)
class MistralKeys(RmsKeys):
    """The keys of config.json that decide what is computed."""

    num_key_value_heads: Count | None = 8
    max_position_embeddings: Count = 131072
    sliding_window: Count | None = 4096


def _read(keys: MistralKeys) -> StackConfig:
    plan = rms_plan(keys)
    attention = plan.attention(mask=MaskSpec(causal=True, window=keys.sliding_window))
    return plan.stack([plan.layer(attention=attention)] * plan.n_layers)


def _write(config: ModelConfig) -> MistralKeys:
    window = config.output_stack.layers[0].attention.mask.window
    return MistralKeys(**llama_keys(config), sliding_window=window)


FAMILY = llama_family(
    _read,
    _write,
    key="mistral",
    label="Mistral",
    architectures=architectures("Mistral", *EVERY_TASK),
    keys=MistralKeys,
)
