"""Mixtures of experts as config.json and weight files have them: a tensor for each expert, or all stacked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from core_model.checkpoint.families.conversion import Joined, Stacked
from core_model.checkpoint.families.family import NameTable, Row, layer_rows, row
from core_model.checkpoint.families.llama_like import llama_names
from core_model.config import ExpertsSpec, FeedForwardSpec, ModelConfig
from core_model.errors import ConfigError
from core_model.wording import shown

MAX_EXPERTS = 100_000
"""In all layers together: four times as many as the largest published models have."""


class ActiveExperts(Protocol):
    """Keys that say how many experts a token goes through."""

    @property
    def num_hidden_layers(self) -> int: ...

    @property
    def num_experts_per_tok(self) -> int: ...


def read_experts(keys: ActiveExperts, key: str, **others: Any) -> ExpertsSpec:
    """As many experts as the named key says; `others` are more fields of the spec."""
    n_experts, n_active = getattr(keys, key), keys.num_experts_per_tok
    if n_experts * keys.num_hidden_layers > MAX_EXPERTS:
        raise ConfigError(f"{key} is {shown(n_experts)} in config.json: at most {MAX_EXPERTS} in all layers are read")
    if n_active > n_experts:
        raise ConfigError(f"num_experts_per_tok is {shown(n_active)} in config.json: {key} is only {n_experts}")
    return ExpertsSpec(n_experts=n_experts, n_active=n_active, **others)


def mixture(config: ModelConfig) -> tuple[FeedForwardSpec, ExpertsSpec]:
    """The first feed-forward of a config that is a mixture of experts; ConfigError when there is none to write."""
    for layer in config.output_stack.layers:
        if layer.feed_forward.experts is not None:
            return layer.feed_forward, layer.feed_forward.experts
    raise ConfigError("no layer of the model has a mixture of experts: this family is for those")


def expert_table(
    *lines: Row, block: str, maps: Mapping[str, str], spellings: Sequence[tuple[str, str]] = ()
) -> NameTable:
    """A table of these lines and of experts in `block` of a layer; `maps` are theirs of gate, input and output.

    Files have a tensor for each expert or, in the newer dialect, gate and input of all experts in one.
    """
    experts = "decoder.layers.{i}.feed_forward.experts"

    def one_by_one(config: ModelConfig) -> list[Row]:
        every = [layer.feed_forward.experts for layer in config.output_stack.layers]
        indices = range(next((spec.n_experts for spec in every if spec), 0))
        return [
            Row(
                theirs=tuple(f"layers.{{i}}.{block}.experts.{e}.{theirs}.weight" for e in indices),
                ours=(f"{experts}.{ours}.weight",),
                conversion=Stacked(),
            )
            for ours, theirs in maps.items()
        ]

    def stacked(config: ModelConfig) -> list[Row]:
        both = (f"{experts}.gate.weight", f"{experts}.input.weight")
        return [
            row(f"layers.{{i}}.{block}.experts.gate_up_proj", *both, conversion=Joined(axis=1)),
            row(f"layers.{{i}}.{block}.experts.down_proj", f"{experts}.output.weight"),
        ]

    router = layer_rows("layers.{i}", {f"{block}.gate.weight": "feed_forward.router.weight"})
    older, newer = (
        llama_names(*lines, *router, of_config=rows, spellings=tuple(spellings)) for rows in (one_by_one, stacked)
    )
    return replace(older, dialects=((r"\.experts\.gate_up_proj$", newer.rows),))
