"""timm's ViT state dicts against a ViT written after timm's own, with its names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.convert import convert
from core_model.config import NormSpec, PatchEmbedding
from core_model.errors import ConfigError, CoreError
from core_model.trace import Inputs, run_trace
from tests.core_model.checkpoint.references import ATTENTION_LIMIT, OUTPUT_LIMIT, assert_close

WIDTH, N_HEADS, HIDDEN, PATCH, SIDE, DEPTH, CLASSES = 30, 5, 37, 7, 3, 3, 4


class Attention(nn.Module):
    def __init__(self, *, qkv_bias: bool, qk_norm: bool) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=qkv_bias)
        size = WIDTH // N_HEADS
        self.q_norm, self.k_norm = (nn.LayerNorm(size, eps=1e-6) if qk_norm else nn.Identity() for _ in range(2))
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.seen = torch.empty(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).reshape(1, -1, 3, N_HEADS, WIDTH // N_HEADS).permute(2, 0, 3, 1, 4)
        q, k = self.q_norm(q), self.k_norm(k)
        self.seen = (q @ k.transpose(-2, -1) * (WIDTH // N_HEADS) ** -0.5).softmax(-1)
        return self.proj((self.seen @ v).transpose(1, 2).reshape(x.shape))


class Mlp(nn.Module):
    """Two maps, or timm's SwiGLUPacked."""

    def __init__(self, *, swiglu: bool) -> None:
        super().__init__()
        self.swiglu = swiglu
        self.fc1 = nn.Linear(WIDTH, 2 * HIDDEN if swiglu else HIDDEN)
        self.fc2 = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc1(x)
        if not self.swiglu:
            return self.fc2(functional.gelu(x))
        gate, linear = x.chunk(2, dim=-1)
        return self.fc2(functional.silu(gate) * linear)


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gamma


class Block(nn.Module):
    def __init__(self, *, qkv_bias: bool, qk_norm: bool, swiglu: bool, scaled: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, eps=1e-6), nn.LayerNorm(WIDTH, eps=1e-6)
        self.attn, self.mlp = Attention(qkv_bias=qkv_bias, qk_norm=qk_norm), Mlp(swiglu=swiglu)
        self.ls1, self.ls2 = (Scale(), Scale()) if scaled else (nn.Identity(), nn.Identity())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.ls1(self.attn(self.norm1(x)))
        return x + self.ls2(self.mlp(self.norm2(x)))


class AttentionPool(nn.Module):
    """timm's AttentionPoolLatent."""

    def __init__(self) -> None:
        super().__init__()
        self.latent = nn.Parameter(torch.zeros(1, 1, WIDTH))
        self.q, self.kv, self.proj = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm, self.mlp = nn.LayerNorm(WIDTH, eps=1e-6), Mlp(swiglu=False)
        self.seen = torch.empty(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q = self.q(self.latent).reshape(1, 1, N_HEADS, -1).transpose(1, 2)
        k, v = self.kv(x).reshape(1, -1, 2, N_HEADS, WIDTH // N_HEADS).permute(2, 0, 3, 1, 4)
        self.seen = (q @ k.transpose(-2, -1) * (WIDTH // N_HEADS) ** -0.5).softmax(-1)
        x = self.proj((self.seen @ v).transpose(1, 2).reshape(1, 1, WIDTH))
        return (x + self.mlp(self.norm(x)))[:, 0]


class VisionTransformer(nn.Module):
    """`placed` is how many of the tokens before the patches have a position: all, or none (no_embed_class).

    Pool "avg" norms the mean of the patches, "avg of normed" takes the mean of normed ones, "map" is by attention.
    """

    def __init__(
        self,
        *,
        tokens: tuple[tuple[str, int], ...] = (("cls_token", 1),),
        placed: bool = True,
        pool: str = "token",
        pre_norm: bool = False,
        qkv_bias: bool = True,
        qk_norm: bool = False,
        swiglu: bool = False,
        scaled: bool = False,
    ) -> None:
        super().__init__()
        self.names, self.placed, self.pool = [name for name, _ in tokens], placed, pool
        for name, count in tokens:
            self.register_parameter(name, nn.Parameter(torch.zeros(1, count, WIDTH)))
        self.n_tokens = sum(count for _, count in tokens)
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, WIDTH, PATCH, PATCH, bias=not pre_norm)})
        self.pos_embed = nn.Parameter(torch.zeros(1, SIDE * SIDE + self.n_tokens * placed, WIDTH))
        self.norm_pre = nn.LayerNorm(WIDTH, eps=1e-6) if pre_norm else nn.Identity()
        block = {"qkv_bias": qkv_bias, "qk_norm": qk_norm, "swiglu": swiglu, "scaled": scaled}
        self.blocks = nn.Sequential(*(Block(**block) for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6) if pool != "avg" else nn.Identity()
        self.fc_norm = nn.LayerNorm(WIDTH, eps=1e-6) if pool == "avg" else nn.Identity()
        self.head = nn.Identity() if pool in ("none", "map") else nn.Linear(WIDTH, CLASSES)
        self.attn_pool = AttentionPool() if pool == "map" else nn.Identity()
        if "dist_token" in self.names:
            self.head_dist = nn.Linear(WIDTH, CLASSES)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        x = self.patch_embed["proj"](pixels).flatten(2).transpose(1, 2)
        tokens = [getattr(self, name) for name in self.names]
        x = torch.cat((*tokens, x), 1) + self.pos_embed if self.placed else torch.cat((*tokens, x + self.pos_embed), 1)
        x = self.norm(self.blocks(self.norm_pre(x)))
        if self.pool in ("none", "map"):
            return self.attn_pool(x)
        if self.pool.startswith("avg"):
            return self.head(self.fc_norm(x[:, self.n_tokens :].mean(1)))
        if "dist_token" in self.names:
            return (self.head(x[:, 0]) + self.head_dist(x[:, 1])) / 2
        return self.head(x[:, 0])


def seeded(model: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = (
                0.2 if "token" in name or "pos" in name or parameter.dim() < 2 else 2 * parameter[0].numel() ** -0.5
            )
            parameter.normal_(std=spread, generator=generator)
            if "norm" in name and name.endswith("weight"):
                parameter.add_(1)
    return model.eval()


def saved(model: nn.Module, folder: Path, **more: torch.Tensor) -> Path:
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file({**tensors, **more}, folder / "model.safetensors")
    return folder


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "without-biases-of-queries": {"qkv_bias": False},
    "mean-of-patches": {"pool": "avg"},
    "no-class-token": {"tokens": (), "pool": "avg"},
    "class-token-without-position": {"placed": False},
    "distilled": {"tokens": (("cls_token", 1), ("dist_token", 1))},
    "registers-without-positions": {
        "tokens": (("cls_token", 1), ("reg_token", 4)),
        "placed": False,
        "scaled": True,
        "swiglu": True,
        "pool": "none",
    },
    "registers-without-a-class-token": {"tokens": (("reg_token", 4),), "placed": False, "pool": "avg"},
    "registers-with-positions-alone": {"tokens": (("reg_token", 4),), "pool": "avg"},
    "normed-before-the-layers": {"pre_norm": True},
    "normed-queries-and-keys": {"qk_norm": True, "qkv_bias": False},
    "registers-with-positions": {"tokens": (("cls_token", 1), ("reg_token", 2))},
}


@pytest.mark.parametrize("arguments", CASES.values(), ids=CASES)
def test_every_head_and_the_output_agree(arguments: dict[str, Any], tmp_path: Path) -> None:
    model: Any = seeded(VisionTransformer(**arguments))
    pixels = torch.randn(3, SIDE * PATCH, SIDE * PATCH, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want = model(pixels[None])[0].numpy()
    with open_checkpoint(saved(model, tmp_path), assume={"n_heads": N_HEADS}) as checkpoint:
        assert checkpoint.info.refusal is None
        assert checkpoint.info.unexpected == ()
        trace = run_trace(checkpoint.load_model(), Inputs(pixels=pixels.numpy()))
    strongest = 0.0
    for layer, block in enumerate(model.blocks):
        for head, weights in enumerate(block.attn.seen[0].numpy()):
            got = trace.attention("encoder.self", layer, head)
            np.testing.assert_allclose(got, weights, atol=ATTENTION_LIMIT, rtol=0)
            strongest = max(strongest, float(weights.max()))
    assert strongest > 0.5, "a flat reference would agree with anything"
    got = trace.hidden if trace.logits is None else trace.logits
    np.testing.assert_allclose(got, want, atol=OUTPUT_LIMIT * max(1.0, float(want.std())), rtol=0)


def test_a_tower_that_attention_pools_agrees_on_every_head_and_its_vector(tmp_path: Path) -> None:
    model: Any = seeded(VisionTransformer(tokens=(), pool="map"))
    pixels = torch.randn(3, SIDE * PATCH, SIDE * PATCH, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want = model(pixels[None])[0].numpy()
    with open_checkpoint(saved(model, tmp_path), assume={"n_heads": N_HEADS}) as checkpoint:
        assert checkpoint.info.refusal is None
        assert checkpoint.info.unexpected == ()
        trace = run_trace(checkpoint.load_model(), Inputs(pixels=pixels.numpy()))
    maps = {("vision.self", layer): block.attn.seen[0] for layer, block in enumerate(model.blocks)}
    for (site, layer), heads in {**maps, ("vision.pool", 0): model.attn_pool.seen[0]}.items():
        for head, weights in enumerate(heads.numpy()):
            np.testing.assert_allclose(trace.attention(site, layer, head), weights, atol=ATTENTION_LIMIT, rtol=0)
    vector = trace.vectors["vision"]
    np.testing.assert_allclose(vector, want, atol=OUTPUT_LIMIT * max(1.0, float(want.std())), rtol=0)


@pytest.mark.parametrize("grid", [(5, 2), (2, 2), (4, 6)], ids=str)
def test_positions_of_another_size_of_picture_are_interpolated_as_timm_does(
    grid: tuple[int, int], tmp_path: Path
) -> None:
    """timm's resample_abs_pos_embed is bicubic with antialias, whether there are more patches or fewer."""
    model: Any = seeded(VisionTransformer())
    folder = saved(model, tmp_path)
    of_class, of_patches = model.pos_embed.detach().split((1, SIDE * SIDE), dim=1)
    table = of_patches.reshape(1, SIDE, SIDE, WIDTH).permute(0, 3, 1, 2)
    resized = functional.interpolate(table, size=grid, mode="bicubic", antialias=True)
    model.pos_embed = nn.Parameter(torch.cat((of_class, resized.permute(0, 2, 3, 1).reshape(1, -1, WIDTH)), dim=1))
    pixels = torch.randn(3, grid[0] * PATCH, grid[1] * PATCH, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want = model(pixels[None])[0].numpy()
    with open_checkpoint(folder, assume={"n_heads": N_HEADS}) as checkpoint:
        trace = run_trace(checkpoint.load_model(), Inputs(pixels=pixels.numpy()))
    for layer, block in enumerate(model.blocks):
        for head, weights in enumerate(block.attn.seen[0].numpy()):
            got = trace.attention("encoder.self", layer, head)
            np.testing.assert_allclose(got, weights, atol=ATTENTION_LIMIT, rtol=0)
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, want, atol=OUTPUT_LIMIT * max(1.0, float(want.std())), rtol=0)


@pytest.mark.parametrize(
    ("arguments", "family", "library", "output"),
    [
        ({}, "vit", transformers.ViTForImageClassification, "logits"),
        (
            {"tokens": (("cls_token", 1), ("dist_token", 1))},
            "deit",
            transformers.DeiTForImageClassificationWithTeacher,
            "logits",
        ),
        ({"tokens": (), "pool": "map"}, "siglip_vision", transformers.SiglipVisionModel, "pooler_output"),
    ],
)
def test_saved_as_what_transformers_has_it_gives_the_same(
    arguments: dict[str, Any], family: str, library: Any, output: str, tmp_path: Path
) -> None:
    model: Any = seeded(VisionTransformer(**arguments))
    (tmp_path / "timm").mkdir()
    assert convert(saved(model, tmp_path / "timm"), tmp_path / "anew", assume={"n_heads": N_HEADS}).key == family
    pixels = torch.randn(1, 3, SIDE * PATCH, SIDE * PATCH, generator=torch.Generator().manual_seed(1))
    anew, report = library.from_pretrained(tmp_path / "anew", output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    with torch.no_grad():
        assert_close(anew(pixels)[output].numpy(), model(pixels).numpy())


def test_registers_that_no_class_token_leads_are_called_registers(tmp_path: Path) -> None:
    model = VisionTransformer(tokens=(("reg_token", 4),), placed=False, pool="avg")
    with open_checkpoint(saved(model, tmp_path), assume={"n_heads": N_HEADS}) as checkpoint:
        assert checkpoint.config is not None
        patches = checkpoint.config.output_stack.embedding
    assert isinstance(patches, PatchEmbedding)
    assert (patches.n_class_tokens, patches.n_registers, patches.has_class_token) == (0, 4, False)


def test_the_number_of_heads_is_asked_for_beside_timms_own_config_too(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "vit_tiny_patch7_21", "num_classes": CLASSES}))
    with (
        open_checkpoint(saved(VisionTransformer(), tmp_path)) as checkpoint,
        pytest.raises(ConfigError, match=r"config\.json has no num_heads"),
    ):
        checkpoint.load_model()
    with open_checkpoint(tmp_path, assume={"n_heads": N_HEADS}) as checkpoint:
        checkpoint.load_model()


def test_the_config_says_how_a_file_pools_whose_names_leave_it_open(tmp_path: Path) -> None:
    model = seeded(VisionTransformer(pool="avg of normed"))
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "vit_odd_patch7_21", "global_pool": "avg"}))
    pixels = torch.randn(3, SIDE * PATCH, SIDE * PATCH, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want = model(pixels[None])[0].numpy()
    with open_checkpoint(saved(model, tmp_path), assume={"n_heads": N_HEADS}) as checkpoint:
        trace = run_trace(checkpoint.load_model(), Inputs(pixels=pixels.numpy()))
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, want, atol=OUTPUT_LIMIT * max(1.0, float(want.std())), rtol=0)


def of_width(width: int, folder: Path, document: dict[str, Any]) -> Path:
    """A file of one layer of that width with a config.json."""
    shapes = {
        **{"cls_token": (1, 1, width), "pos_embed": (1, 5, width), "patch_embed.proj.weight": (width, 3, 4, 4)},
        **{"patch_embed.proj.bias": (width,), "norm.weight": (width,), "norm.bias": (width,)},
        **{f"blocks.0.norm{i}.{kind}": (width,) for i in (1, 2) for kind in ("weight", "bias")},
        **{"blocks.0.attn.qkv.weight": (3 * width, width), "blocks.0.attn.qkv.bias": (3 * width,)},
        **{"blocks.0.attn.proj.weight": (width, width), "blocks.0.attn.proj.bias": (width,)},
        **{"blocks.0.mlp.fc1.weight": (8, width), "blocks.0.mlp.fc1.bias": (8,)},
        **{"blocks.0.mlp.fc2.weight": (width, 8), "blocks.0.mlp.fc2.bias": (width,)},
    }
    save_file({name: torch.zeros(shape) for name, shape in shapes.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize(
    ("width", "document", "n_heads", "origin"),
    [
        (384, {"architecture": "vit_small_patch16_224"}, 6, "inferred"),
        (192, {"architecture": "deit_tiny_distilled_patch16_224.fb_in1k"}, 3, "inferred"),
        (1536, {"architecture": "vit_giant_patch14_dinov2"}, 24, "inferred"),
        (768, {"architecture": "vit_base_patch16_gap_224"}, 16, "inferred"),
        (384, {"architecture": "vit_small_patch16_224", "model_args": {"num_heads": 4}}, 4, "stated"),
    ],
)
def test_the_number_of_heads_is_what_the_arguments_say_or_the_architectures_name(
    width: int, document: dict[str, Any], n_heads: int, origin: str, tmp_path: Path
) -> None:
    """Expected: timm's own table of architectures."""
    with open_checkpoint(of_width(width, tmp_path, document)) as checkpoint:
        assert checkpoint.info.refusal is None
        facts = {fact.name: (fact.value, fact.origin) for fact in checkpoint.info.facts}
        assert facts["heads"] == (str(n_heads), origin)
        checkpoint.load_model()


def test_a_number_of_heads_that_is_given_wins_over_what_a_name_implies(tmp_path: Path) -> None:
    folder = of_width(384, tmp_path, {"architecture": "vit_small_patch16_224"})
    with open_checkpoint(folder, assume={"n_heads": 12}) as checkpoint:
        assert checkpoint.info.refusal is None
        assert {fact.name: fact.value for fact in checkpoint.info.facts}["heads"] == "12"


def test_a_name_that_does_not_go_with_the_width_says_nothing_of_the_heads(tmp_path: Path) -> None:
    with open_checkpoint(of_width(96, tmp_path, {"architecture": "vit_small_patch16_224"})) as checkpoint:
        assert checkpoint.info.needs == ("n_heads",)
        assert checkpoint.info.refusal is not None and "has no num_heads" in checkpoint.info.refusal


@pytest.mark.parametrize(
    ("name", "eps", "activation"),
    [
        ("vit_small_patch16_224", 1e-6, "gelu"),
        ("vit_base_patch32_clip_224", 1e-5, "gelu"),
        ("vit_large_patch14_clip_quickgelu_336", 1e-5, "gelu_sigmoid"),
        ("vit_so400m_patch16_siglip_gap_256", 1e-6, "gelu_tanh"),
    ],
)
def test_the_name_of_an_architecture_says_its_activation_and_what_its_norms_add(
    name: str, eps: float, activation: str, tmp_path: Path
) -> None:
    """Expected: timm's own table of architectures."""
    folder = of_width(64, tmp_path, {"architecture": name, "model_args": {"num_heads": 1}})
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.config is not None
        (layer,) = checkpoint.config.output_stack.layers
    assert layer.attention_residual.before == NormSpec(eps=eps)
    assert layer.feed_forward.activation == activation


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"global_pool": "map"}, "global_pool is 'map' in config.json: expected avg or token"),
        ({"model_args": {"act_layer": "mish"}}, "act_layer is 'mish' in config.json: expected one of gelu"),
    ],
)
def test_arguments_that_are_not_computed_are_refused_by_name(
    document: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "vit_odd_patch7_21", **document}))
    folder = saved(VisionTransformer(), tmp_path)
    with (
        open_checkpoint(folder, assume={"n_heads": N_HEADS}) as checkpoint,
        pytest.raises(ConfigError, match=message),
    ):
        checkpoint.load_model()


@pytest.mark.parametrize(
    "name", ["blocks.0.attn.norm.weight", "attn_pool.latent", "attn_pool.pos_embed", "blocks.0.attn.q_bias"]
)
def test_another_model_with_some_of_its_names_is_not_taken_for_it(name: str, tmp_path: Path) -> None:
    folder = saved(VisionTransformer(), tmp_path, **{name: torch.ones(WIDTH)})
    with open_checkpoint(folder, assume={"n_heads": N_HEADS}) as checkpoint:
        assert checkpoint.tensors
        with pytest.raises(CoreError, match="not those of a known family"):
            checkpoint.load_model()


def test_positions_of_no_square_image_are_refused(tmp_path: Path) -> None:
    model: Any = VisionTransformer()
    model.pos_embed = nn.Parameter(torch.zeros(1, 12, WIDTH))
    with (
        open_checkpoint(saved(model, tmp_path), assume={"n_heads": N_HEADS}) as checkpoint,
        pytest.raises(ConfigError, match="pos_embed has 12 rows"),
    ):
        checkpoint.load_model()
