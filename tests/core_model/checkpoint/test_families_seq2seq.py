"""Encoder-decoders of text against the transformers library: attention of all three kinds and the output, both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.export import save_as_family
from core_model.errors import ConfigError
from core_model.trace import Inputs, run_trace
from tests.core_model.checkpoint.references import (
    assert_close,
    assert_maps_agree,
    edit_config,
    edit_tensors,
    logits_of,
    saved,
    seeded,
    written_back,
)

IDS = (3, 14, 7, 5, 9, 4, 6, 5, 3, 5, 2)
"""Without 0 and 1, paddings, which have no position of their own; 2 is the end that classifiers read at."""
TARGET = (2, 3, 14, 7, 5, 9, 4)
AGAIN = (2, *IDS[:-1])
"""What a classifier's decoder reads: the input once more, after the start token."""

BART_SIZES: dict[str, Any] = {
    "d_model": 30,
    "encoder_layers": 2,
    "encoder_attention_heads": 5,
    "encoder_ffn_dim": 37,
    "decoder_layers": 3,
    "decoder_attention_heads": 6,
    "decoder_ffn_dim": 29,
    "max_position_embeddings": 17,
}
T5_SIZES: dict[str, Any] = {
    "d_model": 30,
    "d_kv": 8,
    "d_ff": 37,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 5,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 9,
    "eos_token_id": 2,
}
COMMON = {"vocab_size": 23, "num_labels": 3, "attn_implementation": "eager"}
SIZES: dict[str, dict[str, Any]] = {
    "T5": T5_SIZES,
    "MT5": T5_SIZES,
    "UMT5": T5_SIZES,
    "Bart": BART_SIZES,
    "MBart": BART_SIZES,
    "Pegasus": {**BART_SIZES, "eos_token_id": 2},
    "M2M100": BART_SIZES,
    "Marian": {**BART_SIZES, "pad_token_id": 22, "decoder_start_token_id": 22},
}
"""Unusual sizes: stacks of different depth, heads and feed-forwards, T5's heads not a share of the width."""

LARGER = ("shared.weight", "embed_tokens.weight", "q_proj.weight")
"""Weights that must not drown in positions as large as 1."""
GENERATE = "ForConditionalGeneration"
ENCODER_TABLE, DECODER_TABLE = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
SEPARATE = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 19, "pad_token_id": 18}
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("T5", GENERATE, {}),
    ("T5", GENERATE, {"feed_forward_proj": "gated-gelu", "layer_norm_epsilon": 0.1}),
    ("T5", GENERATE, {"feed_forward_proj": "gated-silu", "num_decoder_layers": None}),
    ("T5", "Model", {"relative_attention_num_buckets": 7}),
    ("T5", "ForSequenceClassification", {}),
    ("T5", "ForQuestionAnswering", {"num_labels": 2}),
    ("MT5", GENERATE, {}),
    ("MT5", "Model", {"feed_forward_proj": "relu"}),
    ("UMT5", GENERATE, {}),
    ("UMT5", "Model", {}),
    ("Bart", GENERATE, {}),
    ("Bart", GENERATE, {"scale_embedding": True, "activation_function": "relu"}),
    ("Bart", "Model", {}),
    ("Bart", "ForSequenceClassification", {}),
    ("Bart", "ForQuestionAnswering", {"num_labels": 2}),
    ("MBart", GENERATE, {}),
    ("MBart", "Model", {"scale_embedding": True}),
    ("Pegasus", GENERATE, {"scale_embedding": True}),
    ("Pegasus", "Model", {"d_model": 60}),
    ("M2M100", GENERATE, {}),
    ("M2M100", "Model", {"scale_embedding": False, "pad_token_id": 0}),
    ("Marian", "MTModel", {}),
    ("Marian", "MTModel", {"scale_embedding": True, "activation_function": "swish"}),
    ("Marian", "MTModel", SEPARATE),
    ("Marian", "MTModel", {**SEPARATE, "tie_word_embeddings": False}),
    ("Marian", "Model", {}),
]


def tiny(family: str, kind: str = GENERATE, **changes: Any) -> PreTrainedModel:
    """A small model of one of the library's classes with weights that make its attention anything but flat."""
    config = getattr(transformers, f"{family}Config")(**{**COMMON, **SIZES[family], **changes})
    model = seeded(getattr(transformers, f"{family}{kind}")(config))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if SIZES[family] is not T5_SIZES and name.endswith(LARGER):
                parameter.mul_(3)
        for name, buffer in model.named_buffers():
            if name == "final_logits_bias":
                buffer.normal_(generator=torch.Generator().manual_seed(1))
    return model


def named(case: tuple[str, str, dict[str, Any]]) -> str:
    return "-".join((case[0], case[1], *case[2]))


def reference(model: PreTrainedModel, decoder_ids: tuple[int, ...]) -> Any:
    """What the library computes of one example, with all attention maps."""
    given = {} if decoder_ids == () else {"decoder_input_ids": torch.tensor([decoder_ids])}
    with torch.no_grad():
        return model(input_ids=torch.tensor([IDS]), output_attentions=True, **given)


def assert_agrees(folder: Path, output: Any, decoder_ids: tuple[int, ...]) -> None:
    """What we compute from the saved folder equals the library's output: every map of every site, and the logits."""
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.info.refusal is None
        assert checkpoint.info.unexpected == ()
        trace = run_trace(checkpoint.load_model(), Inputs(ids=IDS, decoder_ids=decoder_ids or None))
    maps = {"encoder.self": output.get("encoder_attentions", output.get("attentions"))}
    if decoder_ids:
        maps |= {"decoder.self": output.decoder_attentions, "decoder.cross": output.cross_attentions}
    assert trace.sites == tuple(maps) if not decoder_ids else set(trace.sites) == set(maps)
    for site, layers in maps.items():
        assert_maps_agree(trace, site, layers)
    assert_close(trace.hidden if trace.logits is None else trace.logits, logits_of(output))


def decoder_ids_of(kind: str) -> tuple[int, ...]:
    """Classifiers read at the end token of their input, so their decoder reads it again."""
    return AGAIN if kind in ("ForSequenceClassification", "ForQuestionAnswering") else TARGET


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_attention_and_the_output_agree_with_the_reference_both_ways(
    case: tuple[str, str, dict[str, Any]], tmp_path: Path
) -> None:
    family, kind, changes = case
    model = tiny(family, kind, **changes)
    want = reference(model, decoder_ids_of(kind))
    assert_agrees(saved(model, tmp_path / "theirs"), want, decoder_ids_of(kind))
    again = written_back(model, tmp_path / "theirs", tmp_path / "ours", unwritten=("embed_positions",))
    assert_close(logits_of(reference(again, decoder_ids_of(kind))), logits_of(want))


def test_the_encoder_of_t5_alone_is_one_stack(tmp_path: Path) -> None:
    model = tiny("T5", "EncoderModel")
    want = reference(model, ())
    assert_agrees(saved(model, tmp_path / "theirs"), want, ())
    with open_checkpoint(tmp_path / "theirs") as checkpoint:
        save_as_family(tmp_path / "ours", checkpoint.load_model(), "t5")
    again = transformers.T5EncoderModel.from_pretrained(tmp_path / "ours")
    assert_close(logits_of(reference(again, ())), logits_of(want))


def test_of_mbarts_classifier_which_reads_at_the_end_token_the_hidden_states_are_shown(tmp_path: Path) -> None:
    """In its texts the language follows the end token, so that is not the last one."""
    model: Any = tiny("MBart", "ForSequenceClassification")
    folder = saved(model, tmp_path)
    assert_agrees(folder, reference(model.model, TARGET), TARGET)
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.config is not None and checkpoint.config.head is None
        facts = {fact.name: fact.value for fact in checkpoint.info.facts}
        assert facts["output head"] == "not computed (MBartForSequenceClassification)"
        assert any("MBartForSequenceClassification is not computed" in told for told in checkpoint.info.warnings)


def test_token_classes_of_t5_read_its_encoder(tmp_path: Path) -> None:
    model = tiny("T5", "ForTokenClassification")
    assert_agrees(saved(model, tmp_path), reference(model, ()), ())


@pytest.mark.parametrize("family", ["T5", "MT5", "UMT5"])
def test_a_head_of_its_own_is_used_and_not_scaled(family: str, tmp_path: Path) -> None:
    """As Flan-T5 is stored: tie_word_embeddings false and lm_head.weight beside the table."""
    model: Any = tiny(family)
    folder = edit_config(saved(model, tmp_path / "theirs"), tie_word_embeddings=False, scale_decoder_outputs=None)
    head = torch.randn(23, 30, generator=torch.Generator().manual_seed(2))
    edit_tensors(folder, {"lm_head.weight": head})
    model.lm_head.weight = torch.nn.Parameter(head)
    model.config.scale_decoder_outputs = False
    assert_agrees(folder, reference(model, TARGET), TARGET)
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.config is not None and checkpoint.config.head is not None
        assert (checkpoint.config.head.tied, checkpoint.config.head.scale) == (False, 1.0)
        save_as_family(tmp_path / "ours", checkpoint.load_model(), checkpoint.info.family or "")
    again = type(model).from_pretrained(tmp_path / "ours", attn_implementation="eager")
    assert_close(logits_of(reference(again, TARGET)), logits_of(reference(model, TARGET)))


@pytest.mark.parametrize("family", ["T5", "MT5", "UMT5"])
@pytest.mark.parametrize(
    "told",
    [
        {"dense_act_fn": "silu"},
        {"feed_forward_proj": "gated-gelu", "dense_act_fn": "relu"},
        {"feed_forward_proj": "gated-gelu", "is_gated_act": ..., "dense_act_fn": "silu"},
        {"feed_forward_proj": "gated-relu", "is_gated_act": False},
        {"feed_forward_proj": "gated-gelu", "dense_act_fn": ...},
        {"feed_forward_proj": "relu", "is_gated_act": True, "dense_act_fn": "gelu"},
    ],
    ids=str,
)
def test_the_activation_that_dense_act_fn_and_is_gated_act_say_wins(
    family: str, told: dict[str, Any], tmp_path: Path
) -> None:
    """As in transformers, where feed_forward_proj only gives what they are without."""
    document = tiny(family, feed_forward_proj="relu").config.to_dict()
    kept = {key: value for key, value in {**document, **told}.items() if value is not ...}
    config = getattr(transformers, f"{family}Config").from_dict({**kept, "attn_implementation": "eager"})
    model = seeded(getattr(transformers, f"{family}{GENERATE}")(config))
    folder = edit_config(saved(model, tmp_path), **told)
    assert_agrees(folder, reference(model, TARGET), TARGET)


def test_copies_of_the_table_and_a_stray_table_of_distances_pass_silently(tmp_path: Path) -> None:
    """As t5-small is stored."""
    model = tiny("T5")
    table = model.state_dict()["shared.weight"]
    stray = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    names = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
    copies = {name: table.clone() for name in names}
    folder = edit_tensors(saved(model, tmp_path), {**copies, stray: torch.ones(8, 5)})
    assert_agrees(folder, reference(model, TARGET), TARGET)
    with open_checkpoint(folder) as checkpoint:
        assert [warning for warning in checkpoint.info.warnings if "tokenizer" not in warning] == []
        assert len(checkpoint.info.tied) == 3


def test_stacks_with_a_table_each_are_read_though_the_config_does_not_say_so(tmp_path: Path) -> None:
    model = tiny("Bart", tie_word_embeddings=False)
    folder = saved(model, tmp_path)
    assert_agrees(folder, reference(model, TARGET), TARGET)
    with open_checkpoint(folder) as checkpoint:
        assert checkpoint.config is not None and not checkpoint.config.shared_embedding
        with pytest.raises(ConfigError, match="no one token table for encoder and decoder"):
            save_as_family(tmp_path / "ours", checkpoint.load_model(), "bart")


@pytest.mark.parametrize("family", ["T5", "MT5", "UMT5", "Bart", "MBart", "Pegasus", "M2M100", "Marian"])
@pytest.mark.parametrize("own", [(ENCODER_TABLE,), (DECODER_TABLE,), (ENCODER_TABLE, DECODER_TABLE)], ids=len)
def test_a_table_that_a_stack_has_of_its_own_is_read_by_it_though_the_config_ties_it(
    family: str, own: tuple[str, ...], tmp_path: Path
) -> None:
    kind = "MTModel" if family == "Marian" else GENERATE
    folder = saved(tiny(family, kind), tmp_path)
    prefix = "" if family in ("T5", "MT5", "UMT5") else "model."
    generator = torch.Generator().manual_seed(5)
    edit_tensors(folder, {f"{prefix}{name}": torch.randn(23, 30, generator=generator) for name in own})
    read = getattr(transformers, f"{family}{kind}").from_pretrained(folder, attn_implementation="eager")
    assert_agrees(folder, reference(read, TARGET), TARGET)
    with open_checkpoint(folder) as checkpoint:
        assert any("ties the token tables of encoder and decoder" in told for told in checkpoint.info.warnings)
        assert not any(name in line for line in checkpoint.info.tied for name in own)


@pytest.mark.parametrize("share", [True, ...], ids=repr)
def test_where_nothing_is_tied_each_table_of_marian_is_used_and_the_one_that_none_reads_is_told(
    share: object, tmp_path: Path
) -> None:
    """transformers keeps four tables then: each stack's, the head's, and the shared one beside them."""
    folder = saved(tiny("Marian", "MTModel", tie_word_embeddings=False), tmp_path)
    if share is ...:
        edit_config(folder, share_encoder_decoder_embeddings=...)
    read = transformers.MarianMTModel.from_pretrained(folder, attn_implementation="eager")
    assert_agrees(folder, reference(read, TARGET), TARGET)
    with open_checkpoint(folder) as checkpoint:
        assert any(told.startswith("model.shared.weight is stored with other") for told in checkpoint.info.warnings)
        assert checkpoint.info.tied == ()


def test_sizes_that_differ_between_the_stacks_are_told_of_both(tmp_path: Path) -> None:
    with open_checkpoint(saved(tiny("Bart"), tmp_path)) as checkpoint:
        facts = {fact.name: fact.value for fact in checkpoint.info.facts}
    assert facts["layers"] == "2 (encoder), 3 (decoder)"
    assert facts["feed-forward width"] == "37 (encoder), 29 (decoder)"
    assert facts["model width"] == "30"


def test_static_tables_of_sines_in_the_file_pass_silently(tmp_path: Path) -> None:
    model = tiny("Marian", "MTModel")
    tables = {name: tensor.clone() for name, tensor in model.state_dict().items() if "embed_positions" in name}
    assert len(tables) == 2
    assert_agrees(edit_tensors(saved(model, tmp_path), tables), reference(model, TARGET), TARGET)


def test_a_bias_of_logits_that_is_zero_is_no_fault(tmp_path: Path) -> None:
    """As BART and Pegasus are stored: a row of zeros, [1, V]."""
    model: Any = tiny("Bart")
    model.final_logits_bias.zero_()
    with open_checkpoint(saved(model, tmp_path)) as checkpoint:
        checkpoint.load_model()
        assert [warning for warning in checkpoint.info.warnings if "tokenizer" not in warning] == []


def test_logits_without_a_bias_are_read_and_written_so(tmp_path: Path) -> None:
    model: Any = tiny("Marian", "MTModel")
    folder = saved(model, tmp_path / "theirs")
    path = folder / "model.safetensors"
    save_file({name: t for name, t in load_file(path).items() if name != "final_logits_bias"}, path)
    model.final_logits_bias.zero_()
    assert_agrees(folder, reference(model, TARGET), TARGET)
    with open_checkpoint(folder) as checkpoint:
        save_as_family(tmp_path / "ours", checkpoint.load_model(), "marian")
    again = transformers.MarianMTModel.from_pretrained(tmp_path / "ours", attn_implementation="eager")
    assert_close(logits_of(reference(again, TARGET)), logits_of(reference(model, TARGET)))


@pytest.mark.parametrize(
    ("family", "changes", "named"),
    [
        ("T5", {"num_decoder_layers": 10**9}, "num_decoder_layers is 1000000000"),
        ("T5", {"feed_forward_proj": "gated-nothing", "dense_act_fn": None}, "feed_forward_proj is 'nothing'"),
        ("T5", {"relative_attention_num_buckets": 1}, "n_buckets is 1"),
        ("Bart", {"decoder_layers": 900}, "decoder_layers is 900"),
        ("Bart", {"decoder_attention_heads": 4}, "decoder_attention_heads is 4 and d_model is 30"),
        ("MBart", {"is_encoder_decoder": False}, "is_encoder_decoder is false"),
        ("Marian", {"activation_function": "nothing"}, "activation_function is 'nothing'"),
    ],
    ids=str,
)
def test_what_a_family_cannot_mean_is_refused_by_the_name_of_its_key(
    family: str, changes: dict[str, Any], named: str, tmp_path: Path
) -> None:
    model = tiny(family, "MTModel" if family == "Marian" else GENERATE)
    with open_checkpoint(edit_config(saved(model, tmp_path), **changes)) as checkpoint:
        assert checkpoint.tensors
        with pytest.raises(ConfigError, match=named):
            checkpoint.load_model()
