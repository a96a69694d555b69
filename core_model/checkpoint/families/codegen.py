"""CodeGen (Nijkamp et al. 2022): GPT-J with queries, values and keys fused as four accelerators held them."""

from __future__ import annotations

from core_model.checkpoint.families.conversion import Joined
from core_model.checkpoint.families.decoders import architectures, foreign
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.gptj import ALIASES, HEADS, PLACES, GptjKeys, read_stack, rows, sizes, write_keys
from core_model.config import ModelConfig
from core_model.errors import ConfigError

_N_ACCELERATORS = 4
"""On how many the models were trained: each wrote its quarter of the queries, then of the values, then of the keys."""


def _read(keys: GptjKeys, weights: Weights) -> ModelConfig:
    if keys.n_embd % _N_ACCELERATORS:
        raise ConfigError(f"n_embd is {keys.n_embd} in config.json: CodeGen stores it in {_N_ACCELERATORS} equal parts")
    return ModelConfig(decoder=read_stack(keys), head=HEADS.read(FAMILY, keys, weights), special=keys.special)


def _write(config: ModelConfig) -> Foreign:
    return foreign(FAMILY, write_keys(config), config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    parts = (f"decoder.layers.{{i}}.attention.{part}.weight" for part in ("query", "value", "key"))
    return rows(config, (row("h.{i}.attn.qkv_proj.weight", *parts, conversion=Joined(n_groups=_N_ACCELERATORS)),))


FAMILY = Family(
    key="codegen",
    label="CodeGen",
    model_types=("codegen",),
    architectures=architectures("CodeGen"),
    keys=GptjKeys,
    read=_read,
    write=_write,
    sizes=sizes,
    places=PLACES,
    names=NameTable(
        rows=_rows,
        prefixes=("transformer.",),
        roots=HEADS.roots,
        buffers=(r"h\.\d+\.attn\.(causal_mask|bias|masked_bias|embed_positions)",),
    ),
    aliases=ALIASES,
    markers=(r"(transformer\.)?h\.0\.attn\.qkv_proj\.weight", r"(transformer\.)?h\.0\.mlp\.fc_in\.weight"),
    tied_by_default=False,
)
