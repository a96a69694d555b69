"""Mistral's and Meta's own files: consolidated.safetensors beside params.json.

The same models as the Hub's Mistral, Mixtral and Llama under other names. Queries and keys are stored for rotary
positions that pair neighbouring dimensions, as in the paper (Su et al. 2021); ours pair the halves of a head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core_model.checkpoint.families.conversion import InterleavedHeads, Stacked
from core_model.checkpoint.families.experts import read_experts
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, layer_rows, row
from core_model.checkpoint.families.fields import Count, Positive
from core_model.checkpoint.families.llama_like import RmsKeys, rms_plan
from core_model.checkpoint.families.rotary import RopeKeys
from core_model.checkpoint.families.windows import windowed
from core_model.config import HeadSpec, ModelConfig
from core_model.errors import ConfigError
from core_model.wording import shown

_TABLE, _HEAD = "tok_embeddings.weight", "output.weight"


@dataclass(frozen=True, kw_only=True)
class MoeKeys:
    """The part of params.json about experts."""

    num_experts: Count
    num_experts_per_tok: Count = 2


@dataclass(frozen=True, kw_only=True)
class NativeKeys(RmsKeys):
    """The keys of params.json under the names config.json has for them.

    Meta writes a vocab_size of -1, which stands for that of the tokenizer. A list of windows is repeated over the
    layers. `use_scaled_rope` is Llama 3.1's way of reading beyond 8192 tokens.
    """

    vocab_size: int = -1
    rms_norm_eps: Positive = 1e-5
    sliding_window: Count | list[Count | None] | None = None
    moe: MoeKeys | None = None
    use_scaled_rope: bool = False
    rope_scaling_factor: Positive | None = None
    yarn: dict[str, object] | None = None
    llama_4_scaling: dict[str, object] | None = None

    @property
    def num_local_experts(self) -> int:
        """As Mixtral calls it."""
        return self.moe.num_experts if self.moe else 0

    @property
    def num_experts_per_tok(self) -> int:
        """Experts a token goes through."""
        return self.moe.num_experts_per_tok if self.moe else 0


def _read(keys: NativeKeys, weights: Weights) -> ModelConfig:
    for key in ("yarn", "llama_4_scaling"):
        if getattr(keys, key):
            raise ConfigError(
                f"{key} is given in config.json: positions stretched this way are not read; open the folder that has "
                "config.json and model.safetensors"
            )
    n_rows = weights.size(_TABLE, 0)
    if keys.vocab_size < 1 and n_rows:
        keys = replace(keys, vocab_size=n_rows)
    plan = rms_plan(replace(keys, rope_scaling=_scaled(keys)))
    experts = read_experts(keys, "num_local_experts", renormalize=True) if keys.moe else None
    layer = plan.layer(feed_forward=plan.feed_forward(experts=experts))
    tied = weights.ties(_HEAD, _TABLE, stated=keys.tie_word_embeddings, default=False)
    return ModelConfig(
        decoder=plan.stack(windowed(layer, _windows(keys))),
        head=HeadSpec(n_outputs=keys.vocab_size, task="language_model", tied=tied),
        special=keys.special,
    )


def _windows(keys: NativeKeys) -> tuple[int | None, ...]:
    """The window of each layer."""
    cycle = keys.sliding_window if isinstance(keys.sliding_window, list) else [keys.sliding_window]
    if not cycle or keys.num_hidden_layers % len(cycle):
        raise ConfigError(
            f"sliding_window has {len(cycle)} entries in config.json: {shown(keys.num_hidden_layers)} layers are no "
            "multiple of that"
        )
    return tuple(cycle * (keys.num_hidden_layers // len(cycle)))


def _scaled(keys: NativeKeys) -> RopeKeys | None:
    """The scaling of Llama 3.1 and later, of which params.json leaves out the constants of Meta's code."""
    if not keys.use_scaled_rope:
        return keys.rope_scaling
    if keys.rope_scaling_factor is None:
        raise ConfigError(
            "use_scaled_rope is true in config.json, which does not say by how much: add rope_scaling_factor to it, "
            "8 for Llama 3.1 and 3.3, 32 for Llama 3.2"
        )
    return RopeKeys(
        rope_type="llama3",
        factor=keys.rope_scaling_factor,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_max_position_embeddings=8192,
    )


def _write(config: ModelConfig) -> Foreign:
    raise ConfigError("params.json is read by no other library: save the model as Mistral, Mixtral or Llama instead")


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    layer = config.output_stack.layers[0]
    attends, experts = layer.attention, layer.feed_forward.experts
    copies = (_HEAD,) if config.head and config.head.tied else ()
    maps = {"gate": "w1", "input": "w3", "output": "w2"}
    return (
        row(_TABLE, "decoder.embedding.token.weight", also=copies),
        *layer_rows("layers.{i}", {"attention.wq.*": "attention.query.*"}, InterleavedHeads(n_heads=attends.n_heads)),
        *layer_rows("layers.{i}", {"attention.wk.*": "attention.key.*"}, InterleavedHeads(n_heads=attends.n_key_heads)),
        *layer_rows(
            "layers.{i}",
            {
                "attention.wv.*": "attention.value.*",
                "attention.wo.*": "attention.output.*",
                "attention_norm.*": "attention_residual.before.*",
                "ffn_norm.*": "feed_forward_residual.before.*",
                "feed_forward.gate.weight": "feed_forward.router.weight",
                **{f"feed_forward.{theirs}.*": f"feed_forward.{ours}.*" for ours, theirs in maps.items()},
            },
        ),
        *(_expert_row(ours, theirs, experts.n_experts) for ours, theirs in maps.items() if experts),
        row("norm.*", "decoder.final_norm.*"),
        row("output.*", "head.output.*"),
    )


def _expert_row(ours: str, theirs: str, n_experts: int) -> Row:
    return Row(
        theirs=tuple(f"layers.{{i}}.feed_forward.experts.{e}.{theirs}.weight" for e in range(n_experts)),
        ours=(f"decoder.layers.{{i}}.feed_forward.experts.{ours}.weight",),
        conversion=Stacked(),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    n_hidden = weights.size("layers.0.feed_forward.w1.weight", 0)
    return {
        "vocab_size": weights.size(_TABLE, 0),
        "hidden_size": weights.size(_TABLE, 1),
        "intermediate_size": n_hidden or weights.size("layers.0.feed_forward.experts.0.w1.weight", 0),
        "num_hidden_layers": weights.n_layers("layers.{i}.attention.wq.weight") or None,
    }


FAMILY = Family(
    key="mistral_native",
    label="Mistral's or Meta's own",
    model_types=("mistral_native",),
    architectures={},
    keys=NativeKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "n_key_heads": "num_key_value_heads",
        "head_size": "head_dim",
        "d_model": "hidden_size",
        "d_hidden": "intermediate_size",
        "vocab_size": "vocab_size",
        "activation": "hidden_act",
        "eps": "rms_norm_eps",
    },
    names=NameTable(rows=_rows, buffers=(r"rope\.freqs",)),
    aliases={
        "dim": "hidden_size",
        "n_layers": "num_hidden_layers",
        "n_heads": "num_attention_heads",
        "n_kv_heads": "num_key_value_heads",
        "hidden_dim": "intermediate_size",
        "norm_eps": "rms_norm_eps",
        "tied_embeddings": "tie_word_embeddings",
        "_sliding_window": "sliding_window",
    },
    document="params.json",
    markers=(r"layers\.0\.attention\.wq\.weight", r"tok_embeddings\.weight"),
    tied_by_default=False,
)
