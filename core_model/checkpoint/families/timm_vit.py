"""ViT as the timm library stores it (Wightman 2019), DeiT, DINOv2, CLIP's and SigLIP's among them.

Its config.json names an architecture, but sizes only where they are not that architecture's own: the shapes tell them,
and its name the number of heads. A file with any weight that is not a plain ViT's is of another model of timm and not
taken for one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from core_model.checkpoint.families.conversion import SAME, WRAPPED, Averaged, Rows
from core_model.checkpoint.families.family import Family, Foreign, NameTable, Row, Weights, row
from core_model.checkpoint.families.fields import Count, Positive, equal_heads
from core_model.config import (
    Activation,
    AttentionPooling,
    FeedForwardSpec,
    HeadSpec,
    LayerSpec,
    LearnedPositions,
    ModelConfig,
    NormSpec,
    PatchEmbedding,
    Pooling,
    QueryKeyNorm,
    ResidualSpec,
    StackConfig,
    VectorSpec,
    VectorsSpec,
    multi_head,
)
from core_model.errors import ConfigError

_POOL = "attn_pool"
_TOKENS = ("cls_token", "dist_token", "reg_token")
_PLAIN = re.compile(
    r"(cls_token|dist_token|reg_token|pos_embed|patch_embed\.proj\.\w+|(norm_pre|norm|fc_norm|head|head_dist)\.\w+"
    r"|blocks\.\d+\.(norm1|norm2|attn\.(qkv|q_norm|k_norm|proj)|mlp\.fc1|mlp\.fc2)\.\w+|blocks\.\d+\.ls[12]\.gamma"
    r"|attn_pool\.(latent|(q|kv|proj|norm|mlp\.fc1|mlp\.fc2)\.\w+))"
)
_ACTIVATIONS: dict[str, Activation] = {
    "gelu": "gelu",
    "gelu_tanh": "gelu_tanh",
    "quick_gelu": "gelu_sigmoid",
    "relu": "relu",
    "silu": "silu",
}
"""timm's names of activations, ours."""

_HEADS = {
    ("tiny", 192): 3,
    ("wee", 256): 4,
    ("xsmall", 256): 4,
    ("little", 320): 5,
    ("small", 384): 6,
    ("medium", 512): 8,
    ("mediumd", 512): 8,
    ("betwixt", 640): 10,
    ("base", 768): 12,
    ("base", 896): 14,
    ("so150m", 896): 14,
    ("so150m2", 832): 13,
    ("large", 1024): 16,
    ("intern300m", 1024): 16,
    ("so400m", 1152): 16,
    ("huge", 1280): 16,
    ("giant", 1408): 16,
    ("giant", 1536): 24,
    ("giantopt", 1536): 16,
    ("gigantic", 1664): 16,
}
"""The heads of timm's architectures, by the size in their names and their width."""
_OTHERWISE: tuple[tuple[str, Mapping[str, object]], ...] = (
    (r"vit_base_patch16_gap_224", {"num_heads": 16}),
    (r"vit_\w+_clip_\w+", {"layer_norm_eps": 1e-5}),
    (r"vit_\w+_clip_quickgelu_\w+", {"act_layer": "quick_gelu"}),
    (r"vit_(base_patch32|giantopt_patch16|so400m_patch16)_siglip_\w+", {"act_layer": "gelu_tanh"}),
    (r"vit_large_patch16_siglip_(gap_)?512", {"act_layer": "gelu_tanh"}),
)
"""What timm's architectures of these names have otherwise than the others."""


@dataclass(frozen=True, kw_only=True)
class TimmKeys:
    """The arguments of timm's VisionTransformer that shapes do not tell, or that config.json states anyway."""

    embed_dim: Count
    num_heads: Count
    depth: Count
    d_hidden: Count
    act_layer: str = "gelu"
    layer_norm_eps: Positive = 1e-6
    global_pool: str | None = None


def _implied(document: Mapping[str, object], weights: Weights) -> Mapping[str, object]:
    """What the name of an architecture says of it, where the width is the one that goes with the name."""
    name = str(document.get("architecture", "")).removeprefix("hf_hub:timm/").partition(".")[0]
    size = re.match(r"(?:vit|deit3?|flexivit)_([a-z0-9]+)", name)
    n_heads = _HEADS.get((size[1], weights.size("patch_embed.proj.weight", 0) or 0)) if size else None
    found: dict[str, object] = {} if n_heads is None else {"num_heads": n_heads}
    for pattern, keys in _OTHERWISE:
        if re.fullmatch(pattern, name):
            found.update(keys)
    return found


def _read(keys: TimmKeys, weights: Weights) -> ModelConfig:
    equal_heads(keys, "embed_dim", "num_heads")
    norm, patches = NormSpec(eps=keys.layer_norm_eps), _patches(weights, keys)
    residual = ResidualSpec(before=norm, learned_scale="blocks.0.ls1.gamma" in weights)
    layer = LayerSpec(
        attention=multi_head(
            keys.embed_dim,
            keys.num_heads,
            **dict.fromkeys(("query_bias", "key_bias", "value_bias"), "blocks.0.attn.qkv.bias" in weights),
            output_bias="blocks.0.attn.proj.bias" in weights,
            query_key_norm=QueryKeyNorm(norm=norm) if "blocks.0.attn.q_norm.weight" in weights else None,
        ),
        attention_residual=residual,
        feed_forward=_feed_forward(keys, weights),
        feed_forward_residual=residual,
    )
    stack = StackConfig(
        d_model=keys.embed_dim,
        embedding=patches,
        position=LearnedPositions(max_length=patches.n_positions),
        layers=(layer,) * keys.depth,
        final_norm=norm if "norm.weight" in weights else None,
    )
    if f"{_POOL}.latent" in weights:
        return ModelConfig(vision=stack, vectors=VectorsSpec(vision=_pooled(keys, weights, norm)))
    return ModelConfig(encoder=stack, head=_head(weights, keys, norm))


def _feed_forward(keys: TimmKeys, weights: Weights, name: str = "blocks.0.mlp") -> FeedForwardSpec:
    """Two maps or, where the first is twice as wide as the second reads, SwiGLU."""
    d_hidden = weights.size(f"{name}.fc2.weight", 1) or keys.d_hidden
    is_gated = weights.size(f"{name}.fc1.weight", 0) != d_hidden
    bias, output_bias = (f"{name}.{part}.bias" in weights for part in ("fc1", "fc2"))
    if keys.act_layer not in _ACTIVATIONS:
        raise ConfigError(f"act_layer is {keys.act_layer!r} in config.json: expected one of {', '.join(_ACTIVATIONS)}")
    return FeedForwardSpec(
        d_hidden=d_hidden,
        gated=is_gated,
        activation="silu" if is_gated else _ACTIVATIONS[keys.act_layer],
        bias=bias,
        output_bias=None if output_bias == bias else output_bias,
    )


def _pooled(keys: TimmKeys, weights: Weights, norm: NormSpec) -> VectorSpec:
    """The vector of a tower that attention pools (SigLIP)."""
    has_bias = {part: f"{_POOL}.{part}.bias" in weights for part in ("q", "kv", "proj")}
    attention = multi_head(
        keys.embed_dim,
        keys.num_heads,
        query_bias=has_bias["q"],
        key_bias=has_bias["kv"],
        value_bias=has_bias["kv"],
        output_bias=has_bias["proj"],
    )
    feed_forward = _feed_forward(keys, weights, f"{_POOL}.mlp")
    pooling = AttentionPooling(attention=attention, norm=norm, feed_forward=feed_forward)
    return VectorSpec(pooling="attention", attention=pooling)


def _patches(weights: Weights, keys: TimmKeys) -> PatchEmbedding:
    """Square images. Which tokens have a position is told by how many rows the table has beside a square of patches:
    of an image worth the name, one more or five more never make another."""
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
                has_class_token="cls_token" in weights,
                bias="patch_embed.proj.bias" in weights,
                norm=NormSpec(eps=keys.layer_norm_eps) if "norm_pre.weight" in weights else None,
                smooths_positions=True,
            )
    raise ConfigError(f"pos_embed has {n_rows} rows: that is no square of patches, and other images are not supported")


def _head(weights: Weights, keys: TimmKeys, norm: NormSpec) -> HeadSpec | None:
    """The classifier: of the class token, of both of DeiT's, or of the mean of the patches."""
    n_classes = weights.size("head.weight", 0)
    if n_classes is None:
        return None
    has_norm = "fc_norm.weight" in weights
    pools_patches = keys.global_pool == "avg" or (keys.global_pool is None and has_norm)
    pooling: Pooling = "first_two" if "head_dist.weight" in weights else "first"
    if pools_patches or "cls_token" not in weights:
        pooling = "mean_patches"
    if keys.global_pool not in (None, "avg", "token"):
        raise ConfigError(f"global_pool is {keys.global_pool!r} in config.json: expected avg or token")
    return HeadSpec(
        n_outputs=n_classes,
        task="image_classes",
        pooling=pooling,
        norm=norm if has_norm else None,
        bias="head.bias" in weights,
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
            ours=(f"{config.output_name}.embedding.{ours}",),
            conversion=Rows(counts=(*(1,) * (len(part) - 1), n_rows - len(part) + 1)),
        )
        for ours, n_rows, part in parts
        if n_rows
    )


def _rows_with_class_token(config: ModelConfig) -> tuple[Row, ...]:
    """The name table of a file that has a class token and, where there are more than one, registers."""
    patches = config.output_stack.embedding
    assert isinstance(patches, PatchEmbedding)
    names = ("cls_token",) if patches.n_class_tokens + patches.n_registers == 1 else ("cls_token", "reg_token")
    return *_token_rows(config, *names), *_rows(config)


def _rows(config: ModelConfig) -> tuple[Row, ...]:
    stack = config.output_name
    theirs, ours = "blocks.{i}", f"{stack}.layers.{{i}}"
    is_gated = config.output_stack.layers[0].feed_forward.gated
    maps = ("gate", "input") if is_gated else ("input",)
    is_distilled = config.head is not None and config.head.pooling == "first_two"
    heads = ("head.*", "head_dist.*") if is_distilled else ("head.*",)
    return (
        row("patch_embed.proj.*", f"{stack}.embedding.patches.*"),
        row("norm_pre.*", f"{stack}.embedding.norm.*"),
        row("pos_embed", f"{stack}.position.weight", conversion=WRAPPED),
        row(f"{theirs}.norm1.*", f"{ours}.attention_residual.before.*"),
        row(f"{theirs}.attn.qkv.*", *(f"{ours}.attention.{part}.*" for part in ("query", "key", "value"))),
        row(f"{theirs}.attn.q_norm.*", f"{ours}.attention.query_norm.*"),
        row(f"{theirs}.attn.k_norm.*", f"{ours}.attention.key_norm.*"),
        row(f"{theirs}.attn.proj.*", f"{ours}.attention.output.*"),
        row(f"{theirs}.ls1.gamma", f"{ours}.attention_residual.learned_scale"),
        row(f"{theirs}.norm2.*", f"{ours}.feed_forward_residual.before.*"),
        row(f"{theirs}.mlp.fc1.*", *(f"{ours}.feed_forward.{part}.*" for part in maps)),
        row(f"{theirs}.mlp.fc2.*", f"{ours}.feed_forward.output.*"),
        row(f"{theirs}.ls2.gamma", f"{ours}.feed_forward_residual.learned_scale"),
        row("norm.*", f"{stack}.final_norm.*"),
        row("fc_norm.*", "head.norm.*"),
        Row(theirs=heads, ours=("head.output.*",), conversion=Averaged() if is_distilled else SAME),
        *_pool_rows(),
    )


def _pool_rows() -> tuple[Row, ...]:
    """What pools a tower."""
    ours = "vectors.vision.pool"
    return (
        row(f"{_POOL}.latent", f"{ours}.probe", conversion=WRAPPED),
        row(f"{_POOL}.q.*", f"{ours}.attention.query.*"),
        row(f"{_POOL}.kv.*", f"{ours}.attention.key.*", f"{ours}.attention.value.*"),
        row(f"{_POOL}.proj.*", f"{ours}.attention.output.*"),
        row(f"{_POOL}.norm.*", f"{ours}.norm.*"),
        row(f"{_POOL}.mlp.fc1.*", f"{ours}.feed_forward.input.*"),
        row(f"{_POOL}.mlp.fc2.*", f"{ours}.feed_forward.output.*"),
    )


def _sizes(weights: Weights) -> Mapping[str, object]:
    return {
        "embed_dim": weights.size("patch_embed.proj.weight", 0),
        "depth": weights.n_layers("blocks.{i}.attn.qkv.weight") or None,
        "d_hidden": weights.size("blocks.0.mlp.fc2.weight", 1),
    }


def _is_plain(weights: Weights) -> bool:
    """Whether every weight is one of a plain ViT, and what pools it pools all and is the end."""
    is_pooled_otherwise = f"{_POOL}.latent" in weights and any(name in weights for name in (*_TOKENS, "head.weight"))
    return all(_PLAIN.fullmatch(name) for name in weights.shapes) and not is_pooled_otherwise


FAMILY = Family(
    key="timm_vit",
    label="timm's ViT",
    model_types=("timm_vit",),
    architectures={"VisionTransformer": "image_classes"},
    keys=TimmKeys,
    read=_read,
    write=_write,
    sizes=_sizes,
    implied=_implied,
    part="model_args",
    places={
        "n_layers": "depth",
        "n_heads": "num_heads",
        "d_model": "embed_dim",
        "d_hidden": "d_hidden",
        "activation": "act_layer",
        "eps": "layer_norm_eps",
    },
    names=NameTable(
        rows=_rows,
        roots=("head.", "head_dist.", "fc_norm."),
        unused=(r"fc_norm\..*",),
        dialects=(
            (r"^dist_token$", lambda config: (*_token_rows(config, "cls_token", "dist_token"), *_rows(config))),
            (r"^cls_token$", _rows_with_class_token),
            (r"^reg_token$", lambda config: (*_token_rows(config, "reg_token"), *_rows(config))),
        ),
    ),
    markers=(r"patch_embed\.proj\.weight", r"blocks\.0\.attn\.qkv\.weight", r"pos_embed"),
    fit=_is_plain,
)
