"""CodeGen (Nijkamp et al. 2022): GPT-J with queries, values and keys fused as four accelerators held them."""

from __future__ import annotations

from core_model.checkpoint.families.conversion import Joined
from core_model.checkpoint.families.decoders import architectures, decoder_family
from core_model.checkpoint.families.family import layer_rows, name_table
from core_model.checkpoint.families.gpt2 import ALIASES, PLACES
from core_model.checkpoint.families.gptj import HEADS, ROWS, SIZES, GptjKeys, read, write
from core_model.config import StackConfig
from core_model.errors import ConfigError

_N_ACCELERATORS = 4
"""On how many the models were trained: each wrote its quarter of the queries, then of the values, then of the keys."""
_QUERY_VALUE_KEY = ("attention.query.weight", "attention.value.weight", "attention.key.weight")


def _read(keys: GptjKeys) -> StackConfig:
    if keys.n_embd % _N_ACCELERATORS:
        raise ConfigError(f"n_embd is {keys.n_embd} in config.json: CodeGen stores it in {_N_ACCELERATORS} equal parts")
    return read(keys)


FAMILY = decoder_family(
    HEADS,
    _read,
    write,
    key="codegen",
    label="CodeGen",
    architectures=architectures("CodeGen"),
    keys=GptjKeys,
    sizes=SIZES,
    places=PLACES,
    names=name_table(
        HEADS,
        *ROWS,
        *layer_rows("h.{i}", {"attn.qkv_proj.weight": _QUERY_VALUE_KEY}, Joined(n_groups=_N_ACCELERATORS)),
        prefixes=("transformer.",),
        buffers=(r"h\.\d+\.attn\.(causal_mask|bias|masked_bias|embed_positions)",),
    ),
    aliases=ALIASES,
    markers=(r"(transformer\.)?h\.0\.attn\.qkv_proj\.weight", r"(transformer\.)?h\.0\.mlp\.fc_in\.weight"),
    tied_by_default=False,
)
