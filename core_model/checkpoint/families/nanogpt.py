"""nanoGPT state dicts (Karpathy 2022): GPT-2's names with [out, in] matrices, often without biases or a config.

Its model_args say what the tensors do not: in a model_args.json or config.json beside the weights, or in their header.
Where there are none, n_heads is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families.decoders import DecoderKeys, decoder_family
from core_model.checkpoint.families.family import Weights, layer_rows, name_table, read_sizes
from core_model.checkpoint.families.fields import Count, Rate
from core_model.checkpoint.families.gpt2 import ENDS, FUSED, HEADS, MATRICES, NORMS
from core_model.checkpoint.families.plan import read_plan
from core_model.config import LearnedPositions, ModelConfig, NormSpec, StackConfig
from core_model.errors import ConfigError

_PLACES = {
    "n_layers": "n_layer",
    "n_heads": "n_head",
    "d_model": "n_embd",
    "vocab_size": "vocab_size",
    "max_length": "block_size",
    "activation": "activation",
    "embedding_dropout": "dropout",
    "attention_dropout": "dropout",
    "residual_dropout": "dropout",
}


@dataclass(frozen=True, kw_only=True)
class NanoGptKeys(DecoderKeys):
    """nanoGPT's model_args. `activation` is not one of them: versions before 2023 had the tanh approximation."""

    n_layer: Count
    n_head: Count
    n_embd: Count
    block_size: Count
    bias: bool = True
    activation: str = "gelu"
    dropout: Rate = 0.0


def _read(keys: NanoGptKeys) -> StackConfig:
    plan = read_plan(keys, _PLACES, norm=NormSpec(bias=keys.bias), bias=keys.bias)
    return plan.stack([plan.layer()] * plan.n_layers, position=LearnedPositions(max_length=keys.block_size))


def _write(config: ModelConfig) -> NanoGptKeys:
    raise ConfigError("nanoGPT has no config.json that another program reads: save the model as GPT-2 instead")


_SIZES = read_sizes(
    {"vocab_size": ("wte.weight", 0), "n_embd": ("wte.weight", 1), "block_size": ("wpe.weight", 0)},
    n_layer="h.{i}.ln_1.weight",
)


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {**_SIZES(weights), "bias": "h.0.ln_1.bias" in weights}


def _is_stored_out_by_in(weights: Weights) -> bool:
    """Whether the fused projection is nn.Linear's [3C, C]; GPT-2's is [C, 3C]."""
    shape = weights.shapes["h.0.attn.c_attn.weight"]
    return len(shape) == 2 and shape[0] == 3 * shape[1]


FAMILY = decoder_family(
    HEADS,
    _read,
    _write,
    key="nanogpt",
    label="nanoGPT",
    architectures={"GPT": "language_model"},
    keys=NanoGptKeys,
    sizes=_sizes,
    places=_PLACES,
    names=name_table(
        HEADS,
        *layer_rows("h.{i}", {**NORMS, **FUSED, **MATRICES}),
        *ENDS,
        prefixes=("transformer.",),
        buffers=(r"h\.\d+\.attn\.(masked_)?bias",),
    ),
    document="model_args.json",
    part="model_args",
    markers=(r"(transformer\.)?wpe\.weight", r"(transformer\.)?h\.0\.attn\.c_attn\.weight"),
    fit=_is_stored_out_by_in,
)
