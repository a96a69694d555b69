"""ViT as the timm library stores it (Wightman 2019), DeiT and DINOv2 among them.

Its config.json names an architecture but no sizes: they are read from the shapes, and the heads asked for. A file with
any weight that is not a plain ViT's is of another model of timm and not taken for one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core_model.checkpoint.families.conversion import SAME, WRAPPED, Averaged, Rows
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Positive, activation, equal_heads
from core_model.config import (
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    LearnedPositions,
    ModelConfig,
    NormSpec,
    PatchEmbedding,
    ResidualSpec,
    StackConfig,
    multi_head,
)
from core_model.errors import ConfigError

_TOKENS = ("cls_token", "dist_token", "reg_token")
_PLAIN = re.compile(
    r"(cls_token|dist_token|reg_token|pos_embed|patch_embed\.proj\.\w+|(norm|fc_norm|head|head_dist)\.\w+"
    r"|blocks\.\d+\.(norm1|norm2|attn\.qkv|attn\.proj|mlp\.fc1|mlp\.fc2)\.\w+|blocks\.\d+\.ls[12]\.gamma)"
)


@dataclass(frozen=True, kw_only=True)
class TimmKeys:
    """The arguments of timm's VisionTransformer."""

    embed_dim: Count
    num_heads: Count
    depth: Count
    d_hidden: Count
    activation: str = "gelu"
    layer_norm_eps: Positive = 1e-6


def _read(keys: TimmKeys, weights: Weights) -> ModelConfig:
    equal_heads(keys, "embed_dim", "num_heads")
    norm, patches = NormSpec(eps=keys.layer_norm_eps), _patches(weights)
    residual = ResidualSpec(before=norm, learned_scale="blocks.0.ls1.gamma" in weights)
    biases = dict.fromkeys(("query_bias", "key_bias", "value_bias"), "blocks.0.attn.qkv.bias" in weights)
    is_gated = weights.size("blocks.0.mlp.fc1.weight", 0) != keys.d_hidden
    feed_forward = FeedForwardSpec(
        d_hidden=keys.d_hidden,
        gated=is_gated,
        activation="silu" if is_gated else activation("activation", keys.activation),
    )
    layer = LayerSpec(
        attention=multi_head(keys.embed_dim, keys.num_heads, **biases),
        attention_residual=residual,
        feed_forward=feed_forward,
        feed_forward_residual=residual,
    )
    encoder = StackConfig(
        d_model=keys.embed_dim,
        embedding=patches,
        position=LearnedPositions(max_length=patches.n_positions),
        layers=(layer,) * keys.depth,
        final_norm=norm if "norm.weight" in weights else None,
    )
    return ModelConfig(encoder=encoder, head=_head(weights, norm))


def _patches(weights: Weights) -> PatchEmbedding:
    """Square images. Which tokens have a position is told by how many rows the table has beside a square of patches:
    one or two more than a square never make another."""
    shape = weights.shapes.get("patch_embed.proj.weight", ())
    n_rows = weights.size("pos_embed", 1) or 0
    counts = [weights.size(name, 1) or 0 for name in _TOKENS]
    for n_placed in (0, counts[0] + counts[1], sum(counts)):
        side = math.isqrt(max(n_rows - n_placed, 0))
        if len(shape) == 4 and side and side * side == n_rows - n_placed:
            _, n_channels, *patch_size = shape
            return PatchEmbedding(
                image_size=(side * patch_size[0], side * patch_size[1]),
                patch_size=(patch_size[0], patch_size[1]),
                n_channels=n_channels,
                n_class_tokens=n_placed,
                n_registers=sum(counts) - n_placed,
                bias="patch_embed.proj.bias" in weights,
            )
    raise ConfigError(f"pos_embed has {n_rows} rows: that is no square of patches, and other images are not supported")


def _head(weights: Weights, norm: NormSpec) -> HeadSpec | None:
    """The classifier: of the class token, of both of DeiT's, or of the mean of the patches."""
    n_classes = weights.size("head.weight", 0)
    if n_classes is None:
        return None
    pools_patches = "fc_norm.weight" in weights or "cls_token" not in weights
    return HeadSpec(
        n_outputs=n_classes,
        task="image_classes",
        pooling="mean_patches" if pools_patches else "first_two" if "head_dist.weight" in weights else "first",
        norm=norm if "fc_norm.weight" in weights else None,
        bias=True,
    )


def _write(config: ModelConfig) -> Foreign:
    raise ConfigError("timm has no config.json with sizes: save the model as ViT, DeiT or DINOv2 instead")


def _token_rows(config: ModelConfig, *names: str) -> tuple[Row, ...]:
    """Tokens of these names: those with a position, then those without; the last may be several."""
    patches = config.output_stack.embedding
    assert isinstance(patches, PatchEmbedding)
    n_placed = len(names) if not patches.n_registers else len(names) - 1 if patches.n_class_tokens else 0
    parts = (
        ("class_tokens", patches.n_class_tokens, names[:n_placed]),
        ("registers", patches.n_registers, names[n_placed:]),
    )
    return tuple(
        Row(
            theirs=part,
            ours=(f"encoder.embedding.{ours}",),
            conversion=Rows(counts=(*(1,) * (len(part) - 1), n_rows - len(part) + 1)),
        )
        for ours, n_rows, part in parts
        if n_rows
    )


def _rows_with(*tokens: str) -> Callable[[ModelConfig], tuple[Row, ...]]:
    """The name table of a file that has these tokens."""
    return lambda config: (*_token_rows(config, *tokens), *_rows(config))


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    theirs, ours = "blocks.{i}", "encoder.layers.{i}"
    is_gated = config.output_stack.layers[0].feed_forward.gated
    maps = ("gate", "input") if is_gated else ("input",)
    is_distilled = config.head is not None and config.head.pooling == "first_two"
    heads = ("head.*", "head_dist.*") if is_distilled else ("head.*",)
    return (
        row("patch_embed.proj.*", "encoder.embedding.patches.*"),
        row("pos_embed", "encoder.position.weight", conversion=WRAPPED),
        row(f"{theirs}.norm1.*", f"{ours}.attention_residual.before.*"),
        row(f"{theirs}.attn.qkv.*", *(f"{ours}.attention.{part}.*" for part in ("query", "key", "value"))),
        row(f"{theirs}.attn.proj.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.ls1.gamma", f"{ours}.attention_residual.learned_scale"),
        row(f"{theirs}.norm2.*", f"{ours}.feed_forward_residual.before.*"),
        row(f"{theirs}.mlp.fc1.*", *(f"{ours}.feed_forward.{part}.*" for part in maps)),
        row(f"{theirs}.mlp.fc2.*", f"{ours}.feed_forward.output.*"),
        row(f"{theirs}.ls2.gamma", f"{ours}.feed_forward_residual.learned_scale"),
        row("norm.*", "encoder.final_norm.*"),
        row("fc_norm.*", "head.norm.*"),
        Row(theirs=heads, ours=("head.output.*",), conversion=Averaged() if is_distilled else SAME),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "embed_dim": weights.size("patch_embed.proj.weight", 0),
        "depth": weights.n_layers("blocks.{i}.attn.qkv.weight") or None,
        "d_hidden": weights.size("blocks.0.mlp.fc2.weight", 1),
    }


def _is_plain(weights: Weights) -> bool:
    """Whether every weight is one of a plain ViT, and registers stand behind a class token."""
    return all(_PLAIN.fullmatch(name) for name in weights.shapes) and (
        "reg_token" not in weights or "cls_token" in weights
    )


FAMILY = Family(
    key="timm_vit",
    label="timm's ViT",
    model_types=("timm_vit",),
    architectures={"VisionTransformer": "image_classes"},
    keys=TimmKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    places={
        "n_layers": "depth",
        "n_heads": "num_heads",
        "d_model": "embed_dim",
        "d_hidden": "d_hidden",
        "activation": "activation",
        "eps": "layer_norm_eps",
    },
    names=NameTable(
        rows=_rows,
        roots=("head.", "head_dist.", "fc_norm."),
        dialects=(
            (r"^dist_token$", _rows_with("cls_token", "dist_token")),
            (r"^reg_token$", _rows_with("cls_token", "reg_token")),
            (r"^cls_token$", _rows_with("cls_token")),
        ),
    ),
    markers=(r"patch_embed\.proj\.weight", r"blocks\.0\.attn\.qkv\.weight", r"pos_embed"),
    fit=_is_plain,
)
