"""Tiny seeded models of pictures and sounds as the transformers library saves them, and files to give them."""

from __future__ import annotations

import wave
from pathlib import Path

import numpy as np
import transformers
from PIL import Image

from tests.core_model.checkpoint.references import saved, seeded

SIDE, PATCH = 12, 4
"""Pixels of the picture the ViT reads, and of its patches: a grid of 3 x 3."""
RATE, SECONDS = 16000, 0.4
"""Of the sound that Whisper listens to."""
N_HEADS, N_LAYERS = 3, 2
COLORS_YXK = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
WAVE_S = 0.5 * np.sin(2 * np.pi * np.linspace(200, 900, round(RATE * SECONDS)) * np.arange(RATE * SECONDS) / RATE)


def vit() -> transformers.ViTModel:
    """Two layers of three heads over a class token and nine patches."""
    config = transformers.ViTConfig(
        hidden_size=12,
        num_hidden_layers=N_LAYERS,
        num_attention_heads=N_HEADS,
        intermediate_size=16,
        image_size=SIDE,
        patch_size=PATCH,
    )
    model = seeded(transformers.ViTModel(config))
    assert isinstance(model, transformers.ViTModel)
    return model


def whisper() -> transformers.WhisperModel:
    """A decoder of token ids beside an encoder of 20 frames of 0.02 s."""
    config = transformers.WhisperConfig(
        vocab_size=30,
        num_mel_bins=16,
        d_model=12,
        encoder_layers=N_LAYERS,
        decoder_layers=N_LAYERS,
        encoder_attention_heads=N_HEADS,
        decoder_attention_heads=N_HEADS,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_source_positions=round(SECONDS * 50),
        max_target_positions=16,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=3,
        begin_suppress_tokens=None,
    )
    model = seeded(transformers.WhisperModel(config))
    assert isinstance(model, transformers.WhisperModel)
    return model


def clip() -> transformers.CLIPModel:
    """A tower of token ids and one of pictures as large as the ViT's."""
    sizes = {"hidden_size": 12, "num_hidden_layers": N_LAYERS, "num_attention_heads": N_HEADS, "intermediate_size": 16}
    words = {**sizes, "vocab_size": 30, "max_position_embeddings": 16, "bos_token_id": 1, "eos_token_id": 29}
    pixels = {**sizes, "image_size": SIDE, "patch_size": PATCH}
    model = seeded(transformers.CLIPModel(transformers.CLIPConfig(text_config=words, vision_config=pixels)))
    assert isinstance(model, transformers.CLIPModel)
    return model


def save_models(folder: Path) -> Path:
    """The folder with all three, in "vit", "clip" and "whisper"."""
    saved(vit(), folder / "vit")
    saved(clip(), folder / "clip")
    saved(whisper(), folder / "whisper")
    return folder


def save_picture(path: Path) -> Path:
    """A file of COLORS_YXK, which is as large as the ViT reads."""
    Image.fromarray(COLORS_YXK).save(path)
    return path


def save_sound(path: Path) -> Path:
    """A WAV file of WAVE_S in 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((WAVE_S * 32767).astype("<i2").tobytes())
    return path
