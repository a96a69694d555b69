"""From a file a person has to every head's attention, as the library computes it from the same file."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer as TokenizersTokenizer
from tokenizers import models, pre_tokenizers
from transformers import PreTrainedModel

from core_model.checkpoint import Checkpoint, open_checkpoint
from core_model.checkpoint.convert import convert
from core_model.errors import InputError, TokenizerError
from core_model.trace import Inputs, Trace, run_trace
from tests.core_model.checkpoint.references import ATTENTION_LIMIT, saved, seeded

LIBRARY: Any = transformers
VIT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "image_size": 40, "patch_size": 8}
TOWER = {**VIT, "intermediate_size": 40}
TEXT = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 3, "vocab_size": 9}
IDS = {"bos_token_id": 7, "eos_token_id": 8, "pad_token_id": 0}
WHISPER = {
    "vocab_size": 9,
    "num_mel_bins": 20,
    "d_model": 24,
    "encoder_layers": 2,
    "encoder_attention_heads": 3,
    "encoder_ffn_dim": 40,
    "decoder_layers": 1,
    "decoder_attention_heads": 3,
    "decoder_ffn_dim": 40,
    "max_source_positions": 50,
    "max_target_positions": 12,
    "decoder_start_token_id": 5,
    "pad_token_id": 0,
    "bos_token_id": 6,
    "eos_token_id": 6,
}
FAMILIES: list[tuple[str, str, str, dict[str, Any], dict[str, Any]]] = [
    ("ViT", "ViT", "encoder.self", TOWER, {"size": {"height": 40, "width": 40}}),
    ("DeiT", "DeiT", "encoder.self", TOWER, {"size": 46, "crop_size": 40}),
    ("Dinov2", "Bit", "encoder.self", VIT, {"size": {"shortest_edge": 64}, "crop_size": 56}),
    ("Dinov2WithRegisters", "Bit", "encoder.self", VIT, {"size": {"shortest_edge": 30}, "crop_size": 24}),
    ("Beit", "Beit", "encoder.self", {**TOWER, "use_relative_position_bias": True}, {"size": 40}),
    ("CLIPVision", "CLIP", "vision.self", TOWER, {"size": 40, "crop_size": 40}),
    ("SiglipVision", "Siglip", "vision.self", TOWER, {"size": {"height": 40, "width": 40}}),
]


def tiny(family: str, sizes: dict[str, Any]) -> PreTrainedModel:
    model = seeded(getattr(LIBRARY, f"{family}Model")(getattr(LIBRARY, f"{family}Config")(**sizes)))
    model.set_attn_implementation("eager")
    return model


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    pixels = np.random.default_rng(5).integers(0, 256, (70, 90, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


@pytest.fixture
def speech(tmp_path: Path) -> Path:
    """0.7 s at the model's rate, in values that 16 bits hold exactly."""
    values = np.random.default_rng(6).integers(-8000, 8000, 11200).astype("<i2")
    with wave.open(str(tmp_path / "speech.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(values.tobytes())
    return tmp_path / "speech.wav"


def save_tokenizer(folder: Path) -> None:
    """Words with the ids 0 to 8."""
    words = {word: i for i, word in enumerate(("_", "a", "b", "c", "d", "start", "stop", "<begin>", "<end>"))}
    tokenizer = TokenizersTokenizer(models.WordLevel(words, unk_token="_"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / "tokenizer.json"))


def assert_agrees(trace: Trace, site: str, maps: Any) -> None:
    peaks = [float(layer.max()) * layer.shape[-1] for layer in maps]
    assert max(peaks) > 2, "a flat reference would agree with anything"
    for layer, heads in enumerate(maps):
        for head, want in enumerate(heads[0].numpy()):
            np.testing.assert_allclose(trace.attention(site, layer, head), want, atol=ATTENTION_LIMIT, rtol=0)


def assert_named(inputs: Inputs, trace: Trace) -> None:
    """There is a name for each row and column of every site; a tower is pooled by one query of its own."""
    for site in trace.sites:
        stack, kind = site.split(".")
        keys = inputs.tokens_of("encoder" if kind == "cross" else stack)
        queries = inputs.tokens_of(stack)
        assert queries is not None and keys is not None
        assert trace.shape(site)[2:] == (1 if kind == "pool" else len(queries), len(keys))


def fact(checkpoint: Checkpoint, name: str) -> tuple[str, str]:
    return next((one.value, one.origin) for one in checkpoint.info.facts if one.name == name)


@pytest.mark.parametrize(("family", "processor", "site", "sizes", "keys"), FAMILIES, ids=[case[0] for case in FAMILIES])
def test_a_picture_gives_the_librarys_attention(
    family: str,
    processor: str,
    site: str,
    sizes: dict[str, Any],
    keys: dict[str, Any],
    photo: Path,
    tmp_path: Path,
) -> None:
    model, prepare = tiny(family, sizes), getattr(LIBRARY, f"{processor}ImageProcessorPil")(**keys)
    prepare.save_pretrained(saved(model, tmp_path / "model"))
    library: Any = model
    with torch.no_grad():
        want = library(**prepare(Image.open(photo), return_tensors="pt"), output_attentions=True)
    with open_checkpoint(tmp_path / "model") as checkpoint:
        assert checkpoint.info.reads == ("picture",)
        assert fact(checkpoint, "pictures")[1] == "stated"
        assert not checkpoint.info.warnings
        inputs = checkpoint.encode(picture=photo)
        trace = run_trace(checkpoint.load_model(), inputs)
    assert_agrees(trace, site, want.attentions)
    assert_named(inputs, trace)
    assert trace.notes[0] == inputs.notes[0]


def test_saved_anew_a_model_gives_library_and_us_the_same_pixels_and_attention(photo: Path, tmp_path: Path) -> None:
    prepare = LIBRARY.ViTImageProcessorPil(size={"height": 40, "width": 40}, resample=3, image_mean=[0.1, 0.2, 0.3])
    prepare.save_pretrained(saved(tiny("ViT", TOWER), tmp_path / "model"))
    convert(tmp_path / "model", tmp_path / "anew")
    again = LIBRARY.ViTImageProcessorPil.from_pretrained(tmp_path / "anew")
    library = LIBRARY.ViTModel.from_pretrained(tmp_path / "anew", attn_implementation="eager")
    pixels = again(Image.open(photo), return_tensors="pt")["pixel_values"]
    np.testing.assert_array_equal(pixels, prepare(Image.open(photo), return_tensors="pt")["pixel_values"])
    with torch.no_grad():
        want = library(pixels, output_attentions=True)
    with open_checkpoint(tmp_path / "anew") as checkpoint:
        inputs = checkpoint.encode(picture=photo)
        trace = run_trace(checkpoint.load_model(), inputs)
    assert inputs.pixels is not None
    np.testing.assert_allclose(inputs.pixels, pixels[0].numpy(), atol=1e-6, rtol=0)
    assert_agrees(trace, "encoder.self", want.attentions)


def test_without_a_file_beside_the_weights_the_usual_settings_are_named_as_inferred(
    photo: Path, tmp_path: Path
) -> None:
    prepare = LIBRARY.ViTImageProcessorPil(size={"height": 40, "width": 40})
    with open_checkpoint(saved(tiny("ViT", TOWER), tmp_path)) as checkpoint:
        inputs = checkpoint.encode(picture=photo)
        assert fact(checkpoint, "pictures") == (
            "40 x 40 pixels (bilinear), values from 0 to 1, minus 0.5, divided by 0.5",
            "inferred",
        )
        assert (
            "there is no preprocessor_config.json: files are read as is usual of the family"
            in (checkpoint.info.warnings[0])
        )
    assert inputs.pixels is not None
    want = prepare(Image.open(photo), return_tensors="np")["pixel_values"][0]
    np.testing.assert_allclose(inputs.pixels, want, rtol=0, atol=1e-6)


def test_the_settings_inside_a_processor_config_win(photo: Path, tmp_path: Path) -> None:
    """Newer versions of transformers write them there; what an older one left beside them is passed over, as there."""
    folder = saved(tiny("ViT", TOWER), tmp_path)
    LIBRARY.ViTImageProcessorPil(size={"height": 8, "width": 8}).save_pretrained(folder)
    newer = LIBRARY.ViTImageProcessorPil(size={"height": 48, "width": 40}).to_dict()
    (folder / "processor_config.json").write_text(json.dumps({"image_processor": newer}))
    with open_checkpoint(folder) as checkpoint:
        inputs = checkpoint.encode(picture=photo)
    assert inputs.pixels is not None and inputs.pixels.shape == (3, 48, 40)


def test_timms_own_config_is_read(photo: Path, tmp_path: Path) -> None:
    folder = saved(tiny("ViT", TOWER), tmp_path)
    config = json.loads((folder / "config.json").read_text())
    stated = {"input_size": [3, 40, 40], "crop_pct": 1.0, "interpolation": "bicubic"}
    (folder / "config.json").write_text(json.dumps({**config, "pretrained_cfg": stated}))
    with open_checkpoint(folder) as checkpoint:
        assert fact(checkpoint, "pictures") == (
            "shorter side made 40 pixels (bicubic), middle 40 x 40 cut out, values from 0 to 1, "
            "minus 0.485, 0.456, 0.406, divided by 0.229, 0.224, 0.225",
            "stated",
        )


def test_settings_that_cannot_be_followed_leave_the_model_open_and_say_so(photo: Path, tmp_path: Path) -> None:
    folder = saved(tiny("ViT", TOWER), tmp_path / "model")
    (folder / "preprocessor_config.json").write_text('{"size": {"longest_edge": 40}}')
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.refusal is None
        assert checkpoint.info.reads == ()
        assert "size names longest_edge in preprocessor_config.json" in checkpoint.info.warnings[0]
        with pytest.raises(InputError, match=r"model cannot be given a picture: size names longest_edge"):
            checkpoint.encode(picture=photo)


def clip(folder: Path) -> Path:
    model = seeded(LIBRARY.CLIPModel(LIBRARY.CLIPConfig(text_config={**TEXT, **IDS}, vision_config=TOWER)))
    save_tokenizer(saved(model, folder))
    return folder


def test_two_towers_read_a_text_a_picture_or_both(photo: Path, tmp_path: Path) -> None:
    with open_checkpoint(clip(tmp_path / "clip")) as checkpoint:
        assert checkpoint.info.reads == ("text", "picture")
        model = checkpoint.load_model()
        both = checkpoint.encode("a b c", picture=photo)
        text, picture = checkpoint.encode("a b c"), checkpoint.encode(picture=photo)
    traces = {name: run_trace(model, given) for name, given in (("both", both), ("text", text), ("picture", picture))}
    assert {name: trace.sites for name, trace in traces.items()} == {
        "both": ("text.self", "vision.self"),
        "text": ("text.self",),
        "picture": ("vision.self",),
    }
    assert_named(both, traces["both"])
    assert_named(text, traces["text"])
    assert_named(picture, traces["picture"])
    assert text.tokens_of("vision") is None and picture.tokens_of("text") is None
    for site, alone in (("text.self", "text"), ("vision.self", "picture")):
        np.testing.assert_array_equal(traces["both"].attention(site, 1, 2), traces[alone].attention(site, 1, 2))


def test_a_text_of_siglip_is_padded_as_in_training_before_it_is_compared_with_a_picture(
    photo: Path, tmp_path: Path
) -> None:
    """The library's processor does so with padding="max_length"."""
    sizes = {"text_config": {**TEXT, "max_position_embeddings": 7, "pad_token_id": 6}, "vision_config": TOWER}
    model: Any = tiny("Siglip", sizes)
    save_tokenizer(saved(model, tmp_path / "siglip"))
    with open_checkpoint(tmp_path / "siglip") as checkpoint:
        inputs = checkpoint.encode("a b c", picture=photo)
        trace = run_trace(checkpoint.load_model(), inputs)
    assert inputs.tokens is not None and inputs.pixels is not None
    assert inputs.tokens.ids == (1, 2, 3, 6, 6, 6, 6)
    assert inputs.tokens.texts[3:] == ("stop",) * 4
    assert "text padded from 3 to 7 tokens, as in training" in inputs.notes
    pixels = torch.tensor(inputs.pixels)[None]
    with torch.no_grad():
        want = model(input_ids=torch.tensor([inputs.tokens.ids]), pixel_values=pixels).logits_per_image[0].numpy()
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, want, atol=2e-4)
    assert_named(inputs, trace)


def whisper(folder: Path, *, with_tokenizer: bool) -> PreTrainedModel:
    model = tiny("Whisper", WHISPER)
    LIBRARY.WhisperFeatureExtractor(feature_size=20, chunk_length=1).save_pretrained(saved(model, folder))
    if with_tokenizer:
        save_tokenizer(folder)
    return model


def test_a_sound_gives_the_librarys_attention(speech: Path, tmp_path: Path) -> None:
    library: Any = whisper(tmp_path / "model", with_tokenizer=True)
    with wave.open(str(speech)) as file:
        heard = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768
    extract = LIBRARY.WhisperFeatureExtractor(feature_size=20, chunk_length=1)
    features = extract(heard.astype(np.float32), sampling_rate=16000, return_tensors="pt")["input_features"]
    with torch.no_grad():
        want = library(features, decoder_input_ids=torch.tensor([[5, 1, 2]]), output_attentions=True)
    with open_checkpoint(tmp_path / "model") as checkpoint:
        assert checkpoint.info.reads == ("target", "sound")
        inputs = checkpoint.encode(sound=speech, target="a b")
        trace = run_trace(checkpoint.load_model(), inputs)
    assert_agrees(trace, "encoder.self", want.encoder_attentions)
    assert_agrees(trace, "decoder.self", want.decoder_attentions)
    assert_agrees(trace, "decoder.cross", want.cross_attentions)
    assert_named(inputs, trace)
    assert inputs.tokens is not None
    assert inputs.tokens.texts[:2] == ("0.00 s", "0.02 s") and inputs.tokens.texts[-1] == "0.98 s"
    assert inputs.tokens.special == (False,) * 35 + (True,) * 15, "0.7 s are 35 frames of 20 ms"


def test_without_a_target_or_a_tokenizer_the_decoder_reads_its_start(speech: Path, tmp_path: Path) -> None:
    whisper(tmp_path / "model", with_tokenizer=False)
    with open_checkpoint(tmp_path / "model") as checkpoint:
        assert checkpoint.info.reads == ("sound",)
        inputs = checkpoint.encode(sound=speech)
        with pytest.raises(TokenizerError, match="has no usable tokenizer: type the target as token ids"):
            checkpoint.encode(sound=speech, target="a")
    assert inputs.decoder_ids is not None and list(inputs.decoder_ids) == [5]


def test_what_a_model_does_not_read_is_refused_with_what_it_reads(photo: Path, speech: Path, tmp_path: Path) -> None:
    with open_checkpoint(saved(tiny("ViT", TOWER), tmp_path / "vit")) as checkpoint:
        with pytest.raises(TokenizerError, match="vit reads no text: give it picture"):
            checkpoint.encode("a cat")
        with pytest.raises(InputError, match="vit reads no sound: give it picture"):
            checkpoint.encode(sound=speech)
        with pytest.raises(InputError, match="nothing was given: vit reads picture"):
            checkpoint.encode()
    with open_checkpoint(clip(tmp_path / "clip")) as checkpoint, pytest.raises(InputError, match="reads no sound"):
        checkpoint.encode("a", sound=speech)
    whisper(tmp_path / "whisper", with_tokenizer=True)
    with open_checkpoint(tmp_path / "whisper") as checkpoint, pytest.raises(InputError, match="reads no picture"):
        checkpoint.encode(picture=photo)
