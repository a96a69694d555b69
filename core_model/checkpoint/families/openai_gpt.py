"""GPT, the first (Radford et al. 2018), as transformers stores it: GPT-2's [in, out] matrices, norms after the sums."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.conversion import TRANSPOSED
from core_model.checkpoint.families.decoders import DecoderHeads, decoder_family
from core_model.checkpoint.families.family import layer_rows, name_table, read_sizes, row
from core_model.checkpoint.families.gpt2 import ALIASES, DIALECT, FUSED, MATRICES, DialectKeys
from core_model.checkpoint.families.plan import read_plan, write_keys
from core_model.config import Activation, LearnedPositions, ModelConfig, StackConfig
from core_model.errors import ConfigError
from core_model.wording import shown

_HEADS = DecoderHeads(table="tokens_embed.weight")
_ACTIVATIONS: dict[str, Activation] = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}
"""What `afn` means: here "gelu" is the tanh approximation."""


@dataclass(frozen=True, kw_only=True)
class OpenAiGptKeys(DialectKeys):
    """The keys of config.json that decide what is computed."""

    afn: str = "gelu"


def _read(keys: OpenAiGptKeys) -> StackConfig:
    if keys.afn not in _ACTIVATIONS:
        raise ConfigError(f"afn is {shown(repr(keys.afn))} in config.json: expected one of {', '.join(_ACTIVATIONS)}")
    plan = read_plan(keys, DIALECT, activation=_ACTIVATIONS[keys.afn], post_norm=True)
    return plan.stack([plan.layer()] * plan.n_layers, position=LearnedPositions(max_length=keys.n_positions))


def _write(config: ModelConfig) -> OpenAiGptKeys:
    activation = config.output_stack.layers[0].feed_forward.activation
    afn = next((name for name, known in _ACTIVATIONS.items() if known == activation), activation)
    return OpenAiGptKeys(**write_keys(config, DIALECT), afn=afn)


FAMILY = decoder_family(
    _HEADS,
    _read,
    _write,
    key="openai_gpt",
    label="OpenAI GPT",
    model_types=("openai-gpt",),
    architectures={
        "OpenAIGPTModel": None,
        "OpenAIGPTLMHeadModel": "language_model",
        "OpenAIGPTDoubleHeadsModel": "language_model",
        "OpenAIGPTForSequenceClassification": "sequence_classes",
    },
    keys=OpenAiGptKeys,
    sizes=read_sizes(
        {
            "vocab_size": ("tokens_embed.weight", 0),
            "n_embd": ("tokens_embed.weight", 1),
            "n_positions": ("positions_embed.weight", 0),
        },
        n_layer="h.{i}.ln_1.weight",
    ),
    places={**DIALECT, "activation": "afn"},
    names=name_table(
        _HEADS,
        row("positions_embed.weight", "decoder.position.weight"),
        *layer_rows(
            "h.{i}",
            {
                **FUSED,
                **MATRICES,
                "ln_1.*": "attention_residual.total.*",
                "ln_2.*": "feed_forward_residual.total.*",
            },
            TRANSPOSED,
        ),
        prefixes=("transformer.",),
        roots=(*_HEADS.roots, "multiple_choice_head."),
        buffers=(r"h\.\d+\.attn\.bias", r"position_ids"),
        unused=(r"multiple_choice_head\..*",),
    ),
    aliases=ALIASES,
    markers=(r"(transformer\.)?tokens_embed\.weight", r"(transformer\.)?positions_embed\.weight"),
)
