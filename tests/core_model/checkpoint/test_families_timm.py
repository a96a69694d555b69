"""timm's ViT state dicts against a ViT written after timm's own, with its names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

from core_model.checkpoint import open_checkpoint
from core_model.errors import ConfigError, CoreError
from core_model.trace import Inputs, run_trace
from tests.core_model.checkpoint.references import ATTENTION_LIMIT, OUTPUT_LIMIT

WIDTH, N_HEADS, HIDDEN, PATCH, SIDE, DEPTH, CLASSES = 30, 5, 37, 7, 3, 3, 4


class Attention(nn.Module):
    def __init__(self, *, qkv_bias: bool) -> None:
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=qkv_bias)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.seen = torch.empty(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).reshape(1, -1, 3, N_HEADS, WIDTH // N_HEADS).permute(2, 0, 3, 1, 4)
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
    def __init__(self, *, qkv_bias: bool, swiglu: bool, scaled: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, eps=1e-6), nn.LayerNorm(WIDTH, eps=1e-6)
        self.attn, self.mlp = Attention(qkv_bias=qkv_bias), Mlp(swiglu=swiglu)
        self.ls1, self.ls2 = (Scale(), Scale()) if scaled else (nn.Identity(), nn.Identity())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.ls1(self.attn(self.norm1(x)))
        return x + self.ls2(self.mlp(self.norm2(x)))


class VisionTransformer(nn.Module):
    """`placed` is how many of the tokens before the patches have a position: all, or none (no_embed_class)."""

    def __init__(
        self,
        *,
        tokens: tuple[tuple[str, int], ...] = (("cls_token", 1),),
        placed: bool = True,
        pool: str = "token",
        qkv_bias: bool = True,
        swiglu: bool = False,
        scaled: bool = False,
    ) -> None:
        super().__init__()
        self.names, self.placed, self.pool = [name for name, _ in tokens], placed, pool
        for name, count in tokens:
            self.register_parameter(name, nn.Parameter(torch.zeros(1, count, WIDTH)))
        self.n_tokens = sum(count for _, count in tokens)
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, WIDTH, PATCH, PATCH)})
        self.pos_embed = nn.Parameter(torch.zeros(1, SIDE * SIDE + self.n_tokens * placed, WIDTH))
        self.blocks = nn.Sequential(*(Block(qkv_bias=qkv_bias, swiglu=swiglu, scaled=scaled) for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6) if pool != "avg" else nn.Identity()
        self.fc_norm = nn.LayerNorm(WIDTH, eps=1e-6) if pool == "avg" else nn.Identity()
        self.head = nn.Identity() if pool == "none" else nn.Linear(WIDTH, CLASSES)
        if "dist_token" in self.names:
            self.head_dist = nn.Linear(WIDTH, CLASSES)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        x = self.patch_embed["proj"](pixels).flatten(2).transpose(1, 2)
        tokens = [getattr(self, name) for name in self.names]
        x = torch.cat((*tokens, x), 1) + self.pos_embed if self.placed else torch.cat((*tokens, x + self.pos_embed), 1)
        x = self.norm(self.blocks(x))
        if self.pool == "none":
            return x
        if self.pool == "avg":
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


def test_the_number_of_heads_is_asked_for_beside_timms_own_config_too(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "vit_tiny_patch7_21", "num_classes": CLASSES}))
    with (
        open_checkpoint(saved(VisionTransformer(), tmp_path)) as checkpoint,
        pytest.raises(ConfigError, match=r"config\.json has no num_heads"),
    ):
        checkpoint.load_model()
    with open_checkpoint(tmp_path, assume={"n_heads": N_HEADS}) as checkpoint:
        checkpoint.load_model()


@pytest.mark.parametrize("name", ["blocks.0.attn.q_norm.weight", "norm_pre.weight", "blocks.0.attn.q_bias"])
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
