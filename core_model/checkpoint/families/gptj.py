"""GPT-J (Wang and Komatsuzaki 2021): rotary positions of neighbours, attention beside feed-forward behind one norm."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.checkpoint.families.decoders import DecoderHeads, architectures, decoder_family
from core_model.checkpoint.families.family import layer_rows, name_table, read_sizes, row
from core_model.checkpoint.families.fields import Count, Rate
from core_model.checkpoint.families.gpt2 import ALIASES, PLACES, DialectKeys
from core_model.checkpoint.families.plan import read_plan, side_by_side, write_keys
from core_model.config import ModelConfig, RotaryPositions, StackConfig
from core_model.errors import ConfigError

HEADS = DecoderHeads(table="wte.weight", bias=True)


@dataclass(frozen=True, kw_only=True)
class GptjKeys(DialectKeys):
    """The keys of config.json that decide what is computed."""

    n_positions: Count = 2048
    rotary_dim: Count = 64
    n_inner: Count | None = None
    activation_function: str = "gelu_new"
    embd_pdrop: Rate = 0.0
    attn_pdrop: Rate = 0.0
    resid_pdrop: Rate = 0.0


def read(keys: GptjKeys) -> StackConfig:
    """The decoder that these keys describe; CodeGen's are the same."""
    plan = read_plan(keys, PLACES)
    if keys.rotary_dim > plan.head_size or keys.rotary_dim % 2:
        raise ConfigError(
            f"rotary_dim is {keys.rotary_dim} in config.json: expected an even number of at most {plan.head_size}, "
            "the size of a head"
        )
    position = RotaryPositions(n_rotated=keys.rotary_dim, layout="interleaved")
    layer = plan.layer(attention=plan.attention(bias=False, position=position))
    return plan.stack([side_by_side(layer)] * plan.n_layers)


def write(config: ModelConfig) -> GptjKeys:
    """The keys that describe a config."""
    attention = config.output_stack.layers[0].attention
    position = attention.position
    n_rotated = position.n_rotated if isinstance(position, RotaryPositions) else attention.head_size
    return GptjKeys(**write_keys(config, PLACES), rotary_dim=n_rotated)


SIZES = read_sizes(
    {"vocab_size": ("wte.weight", 0), "n_embd": ("wte.weight", 1), "n_inner": ("h.0.mlp.fc_in.weight", 0)},
    n_layer="h.{i}.ln_1.weight",
)
ROWS = (
    *layer_rows(
        "h.{i}",
        {
            "ln_1.*": "attention_residual.before.*",
            "attn.out_proj.*": "attention.output.*",
            "mlp.fc_in.*": "feed_forward.input.*",
            "mlp.fc_out.*": "feed_forward.output.*",
        },
    ),
    row("ln_f.*", "decoder.final_norm.*"),
)
"""All but the lines for queries, keys and values."""
_PROJECTIONS = {"q_proj.*": "attention.query.*", "k_proj.*": "attention.key.*", "v_proj.*": "attention.value.*"}

FAMILY = decoder_family(
    HEADS,
    read,
    write,
    key="gptj",
    label="GPT-J",
    architectures=architectures("GPTJ", "sequence_classes", "answer_span"),
    keys=GptjKeys,
    sizes=SIZES,
    places=PLACES,
    names=name_table(
        HEADS,
        *ROWS,
        *layer_rows("h.{i}.attn", _PROJECTIONS),
        prefixes=("transformer.",),
        buffers=(r"h\.\d+\.attn\.(masked_)?bias", r"h\.\d+\.attn\.embed_positions"),
    ),
    aliases=ALIASES,
    markers=(r"(transformer\.)?h\.0\.attn\.q_proj\.weight", r"(transformer\.)?h\.0\.mlp\.fc_in\.weight"),
    tied_by_default=False,
)
