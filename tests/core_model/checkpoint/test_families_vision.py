"""Models of images and sound, and two towers, against the transformers library: every head and the output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.export import save_as_family
from core_model.errors import ConfigError, TraceError
from core_model.nn.transformer import Transformer
from core_model.trace import Inputs, run_trace
from core_model.trace.edits import AblateHead
from tests.core_model.checkpoint.pictures import SHARED, SIZES, WIDE, computed, pixels_for, tiny
from tests.core_model.checkpoint.references import (
    ATTENTION_LIMIT,
    assert_close,
    assert_maps_agree,
    saved,
)

CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("ViT", "ForImageClassification", WIDE),
    ("ViT", "Model", {**WIDE, "image_size": [14, 21], "patch_size": [7, 3], "qkv_bias": False, "hidden_act": "relu"}),
    ("DeiT", "ForImageClassification", WIDE),
    ("DeiT", "ForImageClassificationWithTeacher", {**WIDE, "layer_norm_eps": 0.1}),
    ("DeiT", "Model", {**WIDE, "qkv_bias": False}),
    ("Dinov2", "Model", SIZES),
    ("Dinov2", "ForImageClassification", {**SIZES, "mlp_ratio": 3, "qkv_bias": False}),
    ("Dinov2", "Model", {**SIZES, "use_swiglu_ffn": True}),
    ("Dinov2WithRegisters", "Model", {**SIZES, "num_register_tokens": 3}),
    ("Dinov2WithRegisters", "ForImageClassification", {**SIZES, "use_swiglu_ffn": True}),
    ("Beit", "ForImageClassification", {**WIDE, "use_relative_position_bias": True}),
    ("Beit", "ForImageClassification", {**SHARED, "use_mean_pooling": False, "layer_scale_init_value": 0.0}),
    ("Beit", "ForMaskedImageModeling", {**SHARED, "vocab_size": 17, "use_mask_token": True}),
    ("Beit", "Model", {**SHARED, "use_absolute_position_embeddings": True, "use_mean_pooling": False}),
    ("Beit", "Model", {**SHARED, "image_size": 7}),
    ("Beit", "Model", {**SHARED, "num_hidden_layers": 1, "use_mean_pooling": False}),
    ("Data2VecVision", "ForImageClassification", {**WIDE, "use_relative_position_bias": True, "hidden_act": "relu"}),
    ("Data2VecVision", "Model", SHARED),
]


def named(case: tuple[str, str, dict[str, Any]]) -> str:
    return f"{case[0]}{case[1]}-{'-'.join(sorted(set(case[2]) - set(SIZES)))}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_head_and_the_output_agree_with_the_reference_both_ways(
    case: tuple[str, str, dict[str, Any]], tmp_path: Path
) -> None:
    model = tiny(*case)
    pixels = pixels_for(case[2]["image_size"], case[2]["num_channels"])
    want = computed(model, pixel_values=pixels)
    output = (want.logits if "logits" in want else want.last_hidden_state)[0].numpy()
    with open_checkpoint(saved(model, tmp_path / "theirs")) as checkpoint:
        assert checkpoint.info.refusal is None
        assert checkpoint.info.unexpected == ()
        ours = checkpoint.load_model()
        assert checkpoint.info.family is not None
        save_as_family(tmp_path / "ours", ours, checkpoint.info.family)
    trace = run_trace(ours, Inputs(pixels=pixels.numpy()))
    assert_maps_agree(trace, "encoder.self", want.attentions)
    assert_close(trace.logits if "logits" in want else trace.hidden, output)
    library: Any = type(model)
    again, report = library.from_pretrained(tmp_path / "ours", attn_implementation="eager", output_loading_info=True)
    unread = [name for name in report["missing_keys"] if "mask_token" not in name and "pooler" not in name]
    assert not unread and not report["unexpected_keys"] and not report["mismatched_keys"]
    written = computed(again, pixel_values=pixels)
    assert_close((written.logits if "logits" in want else written.last_hidden_state)[0].numpy(), output)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pixels": np.zeros((3, 21, 21))}, "pixels have 3 channels: this model reads 2"),
        ({"pixels": np.zeros((2, 21, 6))}, "pixels are 21 x 6 .*: this model reads patches of 7 x 7"),
        ({"ids": [1]}, "this model reads pixels: give them"),
    ],
)
def test_other_images_than_the_model_reads_are_refused_with_what_is_expected(
    given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with open_checkpoint(saved(tiny("ViT", "Model", WIDE), tmp_path)) as checkpoint:
        model = checkpoint.load_model()
    with pytest.raises(TraceError, match=message):
        run_trace(model, Inputs(**given))


@pytest.mark.parametrize(
    ("family", "sizes"),
    [("ViT", WIDE), ("DeiT", WIDE), ("Dinov2", SIZES), ("Dinov2WithRegisters", SIZES), ("Beit", SHARED)],
)
def test_without_a_config_all_but_the_number_of_heads_is_read_from_the_shapes(
    family: str, sizes: dict[str, Any], tmp_path: Path
) -> None:
    model = tiny(family, "Model", sizes)
    folder = saved(model, tmp_path)
    with open_checkpoint(folder) as checkpoint:
        stated = checkpoint.config
    (folder / "config.json").unlink()
    with open_checkpoint(folder) as checkpoint, pytest.raises(ConfigError, match="give n_heads"):
        checkpoint.load_model()
    with open_checkpoint(folder, assume={"n_heads": 5, "eps": model.config.layer_norm_eps}) as checkpoint:
        assert checkpoint.config == stated
        checkpoint.load_model()


SOUND: dict[str, Any] = {
    "vocab_size": 23,
    "num_mel_bins": 7,
    "d_model": 30,
    "encoder_layers": 3,
    "encoder_attention_heads": 5,
    "encoder_ffn_dim": 37,
    "decoder_layers": 2,
    "decoder_attention_heads": 3,
    "decoder_ffn_dim": 41,
    "max_source_positions": 9,
    "max_target_positions": 12,
    "bos_token_id": 0,
    "eos_token_id": 1,
    "pad_token_id": 2,
    "decoder_start_token_id": 3,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
}
TARGET = (3, 14, 1, 5, 9, 2, 6)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("ForConditionalGeneration", {}),
        ("ForConditionalGeneration", {"tie_word_embeddings": False, "encoder_layers": 2}),
        ("Model", {"activation_function": "relu"}),
    ],
)
def test_whisper_agrees_on_every_head_and_the_output_both_ways(
    kind: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    model = tiny("Whisper", kind, {**SOUND, **changes})
    features = torch.randn(7, 18, generator=torch.Generator().manual_seed(1))
    given = {"input_features": features, "decoder_input_ids": torch.tensor(TARGET)}
    want = computed(model, **given)
    output = (want.logits if "logits" in want else want.last_hidden_state)[0].numpy()
    with open_checkpoint(saved(model, tmp_path / "theirs")) as checkpoint:
        assert checkpoint.info.refusal is None
        assert checkpoint.info.unexpected == ()
        ours = checkpoint.load_model()
        save_as_family(tmp_path / "ours", ours, "whisper")
    trace = run_trace(ours, Inputs(features=features.numpy(), decoder_ids=TARGET))
    assert_maps_agree(trace, "encoder.self", want.encoder_attentions)
    assert_maps_agree(trace, "decoder.self", want.decoder_attentions)
    assert_maps_agree(trace, "decoder.cross", want.cross_attentions)
    assert_close(trace.logits if "logits" in want else trace.hidden, output)
    library: Any = type(model)
    again, report = library.from_pretrained(tmp_path / "ours", attn_implementation="eager", output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    written = computed(again, **given)
    assert_close((written.logits if "logits" in want else written.last_hidden_state)[0].numpy(), output)


TOWER: dict[str, Any] = {
    "hidden_size": 30,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "intermediate_size": 37,
}
TEXT: dict[str, Any] = {
    **TOWER,
    "vocab_size": 23,
    "max_position_embeddings": 9,
    "bos_token_id": 0,
    "eos_token_id": 22,
    "pad_token_id": 1,
}
VISION: dict[str, Any] = {**TOWER, "num_hidden_layers": 2, "image_size": 21, "patch_size": 7, "num_channels": 2}
IDS = (0, 14, 3, 5, 9, 2, 6, 22)


TOWERS = {"text": ("ids", "input_ids"), "vision": ("pixels", "pixel_values")}
"""What our inputs and the library's call what a tower reads."""
GIVEN = {"ids": torch.tensor(IDS), "pixels": pixels_for(21, 2)}
PAIRS = {
    "CLIP": {"text_config": TEXT, "vision_config": VISION, "projection_dim": 11},
    "CLIP-old-end": {"text_config": {**TEXT, "eos_token_id": 2}, "vision_config": VISION, "projection_dim": 11},
    "Siglip": {"text_config": {**TEXT, "projection_size": 30}, "vision_config": VISION},
}


def inputs_of(tower: str) -> Inputs:
    return Inputs(ids=IDS) if tower == "text" else Inputs(pixels=GIVEN["pixels"].numpy())


def opened_and_saved(model: PreTrainedModel, folder: Path) -> tuple[Transformer, Any]:
    """Our model of theirs, and theirs of ours: written as the family it was read as, and read by their class."""
    with open_checkpoint(saved(model, folder / "theirs")) as checkpoint:
        assert checkpoint.info.refusal is None
        assert checkpoint.info.unexpected == ()
        assert not any(fact.name == "stored for other heads" for fact in checkpoint.info.facts)
        ours = checkpoint.load_model()
        assert checkpoint.info.family is not None
        save_as_family(folder / "ours", ours, checkpoint.info.family)
    library: Any = type(model)
    again, report = library.from_pretrained(folder / "ours", attn_implementation="eager", output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    return ours, again


@pytest.mark.parametrize("case", PAIRS)
def test_two_towers_agree_on_every_head_their_vectors_and_how_alike_they_are_both_ways(
    case: str, tmp_path: Path
) -> None:
    model: Any = tiny(case.split("-")[0], "Model", PAIRS[case])
    ours, again = opened_and_saved(model, tmp_path)
    given = {theirs: GIVEN[name] for name, theirs in TOWERS.values()}
    want, written = computed(model, **given), computed(again, **given)
    trace = run_trace(ours, Inputs(ids=IDS, pixels=GIVEN["pixels"].numpy()), keep=["vision.final_hidden"])
    text, vision = want.text_model_output, want.vision_model_output
    assert_maps_agree(trace, "text.self", text.attentions)
    assert_maps_agree(trace, "vision.self", vision.attentions)
    assert_close(trace.hidden, text.last_hidden_state[0].numpy())
    assert_close(trace.activation("vision.final_hidden"), vision.last_hidden_state[0].numpy())
    assert_close(trace.vectors["text"], text.pooler_output[0].numpy())
    assert_close(trace.vectors["vision"], vision.pooler_output[0].numpy())
    assert_close(trace.logits, want.logits_per_image[0].numpy())
    assert_close(written.logits_per_image.numpy(), want.logits_per_image.numpy())


@pytest.mark.parametrize("case", PAIRS)
def test_one_of_two_towers_alone_has_its_vector_and_nothing_to_compare_it_with(case: str, tmp_path: Path) -> None:
    model: Any = tiny(case.split("-")[0], "Model", PAIRS[case])
    with open_checkpoint(saved(model, tmp_path)) as checkpoint:
        ours = checkpoint.load_model()
    for tower, (name, theirs) in TOWERS.items():
        want = computed(getattr(model, f"{tower}_model"), **{theirs: GIVEN[name]})
        trace = run_trace(ours, inputs_of(tower))
        assert {site.split(".")[0] for site in trace.sites} == {tower}
        assert_close(trace.hidden, want.last_hidden_state[0].numpy())
        assert tuple(trace.vectors) == (tower,)
        assert trace.logits is None


@pytest.mark.parametrize(
    ("kind", "sizes", "tower"),
    [
        ("CLIPText Model", TEXT, "text"),
        ("CLIPText ModelWithProjection", {**TEXT, "projection_dim": 11}, "text"),
        ("CLIPVision Model", VISION, "vision"),
        ("CLIPVision ModelWithProjection", {**VISION, "projection_dim": 11}, "vision"),
        ("SiglipText Model", TEXT, "text"),
        ("SiglipVision Model", VISION, "vision"),
        ("SiglipVision Model", {**VISION, "vision_use_head": False}, "vision"),
    ],
)
def test_a_tower_alone_agrees_on_every_head_its_hidden_states_and_its_vector_both_ways(
    kind: str, sizes: dict[str, Any], tower: str, tmp_path: Path
) -> None:
    family, class_end = kind.split(" ")
    model = tiny(family, class_end, sizes)
    ours, again = opened_and_saved(model, tmp_path)
    name, theirs = TOWERS[tower]
    want, written = (computed(one, **{theirs: GIVEN[name]}) for one in (model, again))
    trace = run_trace(ours, inputs_of(tower))
    assert_maps_agree(trace, f"{tower}.self", want.attentions)
    assert_close(trace.hidden, want.last_hidden_state[0].numpy())
    vector = next((key for key in ("text_embeds", "image_embeds", "pooler_output") if want.get(key) is not None), None)
    if vector is None:
        assert not trace.vectors
    else:
        assert_close(trace.vectors[tower], want[vector][0].numpy())
        assert_close(written[vector].numpy(), want[vector].numpy())


def test_a_text_without_its_end_token_has_no_vector(tmp_path: Path) -> None:
    model = tiny("CLIP", "Model", PAIRS["CLIP"])
    with open_checkpoint(saved(model, tmp_path)) as checkpoint:
        ours = checkpoint.load_model()
    trace = run_trace(ours, Inputs(ids=IDS[:-1], pixels=GIVEN["pixels"].numpy()))
    assert tuple(trace.vectors) == ("vision",)
    assert trace.logits is None


def test_the_attention_that_pools_a_picture_is_a_site_of_one_query_and_can_be_edited(tmp_path: Path) -> None:
    """Expected: torch.nn.MultiheadAttention, as the library has it, over the hidden states it pools."""
    model: Any = tiny("SiglipVision", "Model", VISION)
    with open_checkpoint(saved(model, tmp_path)) as checkpoint:
        assert [site.site for site in checkpoint.info.sites] == ["vision.self", "vision.pool"]
        ours = checkpoint.load_model()
    pixels = Inputs(pixels=GIVEN["pixels"].numpy())
    trace = run_trace(ours, pixels)
    head: Any = model.head
    hidden = torch.tensor(trace.hidden)[None]
    with torch.no_grad():
        _, want = head.attention(head.probe, hidden, hidden, average_attn_weights=False)
    assert trace.shape("vision.pool") == (1, 5, 1, 9)
    for index in range(5):
        got = trace.attention("vision.pool", 0, index)
        np.testing.assert_allclose(got, want[0, index].numpy(), atol=ATTENTION_LIMIT, rtol=0)
    edited = run_trace(ours, pixels, edits=[AblateHead(site="vision.pool", layer=0, head=2)])
    assert np.array_equal(edited.hidden, trace.hidden)
    assert not np.allclose(edited.vectors["vision"], trace.vectors["vision"])


@pytest.mark.parametrize("family", ["CLIP", "Siglip"])
def test_a_tower_with_a_classifier_agrees_on_every_head_and_the_classes_both_ways(family: str, tmp_path: Path) -> None:
    model = tiny(family, "ForImageClassification", {"text_config": TEXT, "vision_config": VISION, "num_labels": 3})
    ours, again = opened_and_saved(model, tmp_path)
    want, written = (computed(one, pixel_values=GIVEN["pixels"]) for one in (model, again))
    trace = run_trace(ours, Inputs(pixels=GIVEN["pixels"].numpy()))
    assert_maps_agree(trace, "vision.self", want.attentions)
    assert_close(trace.logits, want.logits[0].numpy())
    assert_close(written.logits.numpy(), want.logits.numpy())


def test_the_card_says_what_comes_out_and_nothing_of_a_tower_that_is_not_there(tmp_path: Path) -> None:
    sizes = {"text_config": TEXT, "vision_config": VISION}
    with open_checkpoint(saved(tiny("CLIP", "Model", sizes), tmp_path / "pair")) as checkpoint:
        facts = {fact.name: fact.value for fact in checkpoint.info.facts}
    assert facts["output head"] == "similarity of text and image"
    assert facts["vocabulary"] == "23"
    with open_checkpoint(saved(tiny("CLIP", "ForImageClassification", sizes), tmp_path / "classes")) as checkpoint:
        facts = {fact.name: fact.value for fact in checkpoint.info.facts}
    assert facts["output head"] == "image classification"
    assert not {"vocabulary", "context length"} & set(facts)


def test_a_two_tower_config_that_lies_about_its_layers_is_refused_by_the_place_of_the_key(tmp_path: Path) -> None:
    folder = saved(tiny("CLIP", "Model", {"text_config": TEXT, "vision_config": VISION}), tmp_path)
    path = folder / "config.json"
    path.write_text(path.read_text().replace('"num_hidden_layers": 2', '"num_hidden_layers": 1000000000'))
    with open_checkpoint(folder) as checkpoint, pytest.raises(ConfigError, match=r"vision_config\.num_hidden_layers"):
        checkpoint.load_model()
