"""Encoders against the transformers library: every head's attention and the output, read and written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
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
    assert_agrees,
    assert_close,
    edit_config,
    edit_tensors,
    logits_of,
    reference,
    saved,
    seeded,
    written_back,
)

IDS = (3, 14, 7, 5, 9, 2, 6, 5, 3, 5, 8)
"""Without 1, the padding of most families, which has no position of its own."""
MASK = 5
COMMON = {"vocab_size": 23, "hidden_size": 30, "num_hidden_layers": 3, "num_attention_heads": 5, "num_labels": 3}
BERT_SIZES = {"intermediate_size": 37, "max_position_embeddings": 17}
SIZES: dict[str, dict[str, Any]] = {
    "Roberta": BERT_SIZES,
    "XLMRoberta": BERT_SIZES,
    "Camembert": BERT_SIZES,
    "DistilBert": {"hidden_dim": 37, "max_position_embeddings": 17},
    "Albert": {**BERT_SIZES, "embedding_size": 14},
    "Electra": {**BERT_SIZES, "embedding_size": 14},
    "MPNet": BERT_SIZES,
    "Esm": {**BERT_SIZES, "position_embedding_type": "rotary", "mask_token_id": MASK, "pad_token_id": 1},
    "RoFormer": {**BERT_SIZES, "embedding_size": 14},
    "ModernBert": {"intermediate_size": 37, "local_attention": 4, "pad_token_id": 0},
    "Deberta": {**BERT_SIZES, "relative_attention": True, "pos_att_type": "c2p|p2c"},
    "DebertaV2": {
        **BERT_SIZES,
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_buckets": 4,
        "norm_rel_ebd": "layer_norm",
        "position_biased_input": False,
    },
}
"""Unusual sizes: odd numbers of layers and heads, feed-forwards of no round factor, widths that are no power of 2."""
TYPES = {"Roberta": 1, "Albert": 2, "Electra": 2, "RoFormer": 2}
"""How many token types a family has, where it has any."""

NOT_READ = ("pooler.", "contact_head.", "sop_classifier.", "embed_positions.", "rotary_embeddings.")
"""Weights of other heads and fixed tables, which we do not write: the library makes them anew."""

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "rope_theta": 500.0}
PLAIN = {"rope_type": "default", "rope_theta": 300.0}
GROUPS = {"num_hidden_layers": 5, "num_hidden_groups": 3}
SHARED = {"share_att_key": True}
BIASED = {"norm_bias": True, "attention_bias": True, "mlp_bias": True, "classifier_bias": True, "decoder_bias": False}
CASES: list[tuple[str, str, dict[str, Any]]] = [
    ("Roberta", "Model", {}),
    ("Roberta", "ForMaskedLM", {"layer_norm_eps": 0.1, "hidden_act": "relu"}),
    ("Roberta", "ForMaskedLM", {"tie_word_embeddings": False, "pad_token_id": 4}),
    ("Roberta", "ForSequenceClassification", {}),
    ("Roberta", "ForTokenClassification", {}),
    ("Roberta", "ForQuestionAnswering", {"num_labels": 2}),
    ("XLMRoberta", "ForMaskedLM", {"type_vocab_size": 1}),
    ("Camembert", "ForTokenClassification", {}),
    ("DistilBert", "Model", {}),
    ("DistilBert", "ForMaskedLM", {"activation": "relu"}),
    ("DistilBert", "ForMaskedLM", {"tie_word_embeddings": False}),
    ("DistilBert", "ForSequenceClassification", {}),
    ("DistilBert", "ForTokenClassification", {}),
    ("DistilBert", "ForQuestionAnswering", {"num_labels": 2}),
    ("Albert", "Model", GROUPS),
    ("Albert", "ForMaskedLM", {}),
    ("Albert", "ForMaskedLM", {"inner_group_num": 2, "num_hidden_groups": 2, "tie_word_embeddings": False}),
    ("Albert", "ForPreTraining", {"embedding_size": 30}),
    ("Albert", "ForSequenceClassification", {"num_hidden_layers": 4, "num_hidden_groups": 2}),
    ("Albert", "ForTokenClassification", {"num_hidden_groups": 3}),
    ("Albert", "ForQuestionAnswering", {"num_labels": 2, "hidden_act": "gelu"}),
    ("Electra", "Model", {}),
    ("Electra", "ForMaskedLM", {"hidden_act": "relu"}),
    ("Electra", "ForPreTraining", {"hidden_act": "relu"}),
    ("Electra", "ForPreTraining", {"embedding_size": 30, "tie_word_embeddings": False}),
    ("Electra", "ForSequenceClassification", {}),
    ("Electra", "ForTokenClassification", {}),
    ("MPNet", "Model", {}),
    ("MPNet", "ForMaskedLM", {"hidden_act": "relu"}),
    ("MPNet", "ForSequenceClassification", {"pad_token_id": 4}),
    ("MPNet", "ForQuestionAnswering", {"num_labels": 2}),
    ("Esm", "Model", {}),
    ("Esm", "ForMaskedLM", {"token_dropout": True, "rope_theta": 500.0}),
    ("Esm", "ForMaskedLM", {"position_embedding_type": "absolute", "emb_layer_norm_before": True}),
    ("Esm", "ForSequenceClassification", {"token_dropout": True, "layer_norm_eps": 0.1}),
    ("Esm", "ForTokenClassification", {"position_embedding_type": "absolute", "token_dropout": True}),
    ("RoFormer", "Model", {}),
    ("RoFormer", "ForMaskedLM", {}),
    ("RoFormer", "ForMaskedLM", {"embedding_size": 30, "tie_word_embeddings": False}),
    ("RoFormer", "ForSequenceClassification", {"hidden_act": "relu"}),
    ("RoFormer", "ForTokenClassification", {"embedding_size": None}),
    ("ModernBert", "Model", {}),
    ("ModernBert", "ForMaskedLM", {"num_hidden_layers": 5, "classifier_activation": "silu"}),
    ("ModernBert", "ForMaskedLM", {**BIASED, "tie_word_embeddings": False, "hidden_activation": "relu"}),
    ("ModernBert", "ForSequenceClassification", {"classifier_pooling": "mean", "local_attention": 7}),
    ("ModernBert", "ForSequenceClassification", {"layer_types": ["sliding_attention", "full_attention"] * 2}),
    ("ModernBert", "ForTokenClassification", {"rope_parameters": {"full_attention": YARN, "sliding_attention": PLAIN}}),
    ("ModernBert", "ForQuestionAnswering", {"num_labels": 2, "layer_types": ["full_attention"] * 3}),
    ("Deberta", "Model", {}),
    ("Deberta", "ForMaskedLM", {"max_relative_positions": 4, "type_vocab_size": 2}),
    ("Deberta", "ForMaskedLM", {"pos_att_type": "c2p", "tie_word_embeddings": False}),
    ("Deberta", "ForSequenceClassification", {"pos_att_type": ["p2c"], "position_biased_input": False}),
    ("Deberta", "ForTokenClassification", {"relative_attention": False, "pos_att_type": None}),
    ("Deberta", "ForQuestionAnswering", {"num_labels": 2, "hidden_act": "relu"}),
    ("DebertaV2", "Model", {}),
    ("DebertaV2", "ForMaskedLM", {**SHARED, "position_biased_input": True, "max_relative_positions": 9}),
    ("DebertaV2", "ForMaskedLM", {"pos_att_type": "c2p", "norm_rel_ebd": "none", "position_buckets": -1}),
    ("DebertaV2", "ForMaskedLM", {**SHARED, "conv_kernel_size": 3, "conv_act": "gelu", "tie_word_embeddings": False}),
    ("DebertaV2", "ForSequenceClassification", {"pos_att_type": "p2c", "pooler_hidden_act": "tanh"}),
    ("DebertaV2", "ForTokenClassification", {**SHARED, "conv_kernel_size": 5, "conv_groups": 3, "type_vocab_size": 2}),
    ("DebertaV2", "ForQuestionAnswering", {"num_labels": 2, "relative_attention": False, "pos_att_type": None}),
    ("DebertaV2", "Model", {**SHARED, "position_buckets": 7, "max_relative_positions": 16}),
]


def tiny(family: str, kind: str, **changes: Any) -> PreTrainedModel:
    """A small model of one of the library's classes with weights that make its attention anything but flat."""
    if "layer_types" in changes:
        changes["num_hidden_layers"] = len(changes["layer_types"])
    config = getattr(transformers, f"{family}Config")(**{**COMMON, **SIZES[family], **changes})
    return seeded(getattr(transformers, f"{family}{kind}")(config))


def named(case: tuple[str, str, dict[str, Any]]) -> str:
    return "-".join((case[0], case[1], *case[2]))


@pytest.mark.parametrize("case", CASES, ids=named)
def test_every_head_and_the_output_agree_with_the_reference_both_ways(
    case: tuple[str, str, dict[str, Any]], tmp_path: Path
) -> None:
    family, kind, changes = case
    model = tiny(family, kind, **changes)
    type_ids = (0,) * 5 + (TYPES[family] - 1,) * 6 if family in TYPES else None
    types = {} if type_ids is None else {"token_type_ids": type_ids}
    want = reference(model, IDS, **types)
    assert_agrees(saved(model, tmp_path / "theirs"), want, "encoder", ids=IDS, type_ids=type_ids)
    again = written_back(model, tmp_path / "theirs", tmp_path / "ours", unwritten=NOT_READ)
    assert_close(logits_of(reference(again, IDS, **types)), logits_of(want))


@pytest.mark.parametrize("where", ["rotary_embeddings", "encoder.layer.0.attention.self.rotary_embeddings"])
def test_rotary_frequencies_rounded_in_the_file_are_used_as_they_are(where: str, tmp_path: Path) -> None:
    """ESM-2 was trained with frequencies in float16: the library keeps those of the file, too."""
    model: Any = tiny("Esm", "ForMaskedLM", token_dropout=True)
    folder = saved(model, tmp_path)
    model.esm.rotary_embeddings.inv_freq = model.esm.rotary_embeddings.inv_freq.half().float()
    path = folder / "model.safetensors"
    tensors = {name: tensor for name, tensor in load_file(path).items() if "inv_freq" not in name}
    save_file({**tensors, f"esm.{where}.inv_freq": model.esm.rotary_embeddings.inv_freq}, path)
    assert_agrees(folder, reference(model, IDS), "encoder", ids=IDS)
    with open_checkpoint(folder) as checkpoint, pytest.raises(ConfigError, match="has 3 frequencies"):
        save_as_family(tmp_path / "ours", checkpoint.load_model(), "esm")


def test_more_runs_than_tensors_are_read_where_weights_are_shared(tmp_path: Path) -> None:
    model = tiny("Albert", "Model", num_hidden_layers=40)
    assert_agrees(saved(model, tmp_path), reference(model, IDS), "encoder", ids=IDS)


def test_modernberts_older_config_dialect_means_the_same(tmp_path: Path) -> None:
    """As ModernBERT was published: a rotary base for each kind of layer, and every how many layers see all."""
    ropes = {"full_attention": {**PLAIN, "rope_theta": 5000.0}, "sliding_attention": PLAIN}
    model = tiny("ModernBert", "ForMaskedLM", num_hidden_layers=5, global_attn_every_n_layers=2, rope_parameters=ropes)
    folder = edit_config(
        saved(model, tmp_path),
        rope_parameters=None,
        layer_types=None,
        global_rope_theta=5000.0,
        local_rope_theta=PLAIN["rope_theta"],
        global_attn_every_n_layers=2,
    )
    assert_agrees(folder, reference(model, IDS), "encoder", ids=IDS)


def test_buffers_and_the_weights_of_other_heads_pass_silently(tmp_path: Path) -> None:
    """As roberta-base is stored."""
    model = tiny("Roberta", "ForMaskedLM")
    folder = edit_tensors(
        saved(model, tmp_path),
        {
            "roberta.pooler.dense.weight": torch.ones(30, 30),
            "roberta.pooler.dense.bias": torch.ones(30),
            "roberta.embeddings.position_ids": torch.arange(17)[None],
            "lm_head.decoder.bias": model.state_dict()["lm_head.bias"].clone(),
        },
    )
    assert_agrees(folder, reference(model, IDS), "encoder", ids=IDS)
    with open_checkpoint(folder) as checkpoint:
        assert [warning for warning in checkpoint.info.warnings if "tokenizer" not in warning] == []


def test_of_a_multiple_choice_model_the_hidden_states_are_shown(tmp_path: Path) -> None:
    model: Any = tiny("Electra", "ForMultipleChoice")
    with open_checkpoint(saved(model, tmp_path)) as checkpoint:
        assert checkpoint.config is not None and checkpoint.config.head is None
        assert any("classifier.weight" in fact.value for fact in checkpoint.info.facts)
    assert_agrees(tmp_path, reference(model.electra, IDS), "encoder", ids=IDS)


@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("family", ["Deberta", "DebertaV2"])
def test_microsofts_own_names_of_the_masked_token_head_are_read(family: str, is_tied: bool, tmp_path: Path) -> None:
    """As deberta-v3 is stored, whose config names no class: the head under lm_predictions, another beside it.

    That head has no table of its own, whatever the config says.
    """
    model = tiny(family, "ForMaskedLM", legacy=False, tie_word_embeddings=is_tied)
    folder = edit_config(saved(model, tmp_path), architectures=...)
    edit_tensors(folder, {"mask_predictions.dense.weight": torch.ones(30, 30)})
    assert "lm_predictions.lm_head.dense.weight" in load_file(folder / "model.safetensors")
    assert_agrees(folder, reference(model, IDS), "encoder", ids=IDS)


@pytest.mark.parametrize("family", ["Roberta", "DistilBert", "MPNet", "ModernBert"])
def test_without_a_config_the_names_tell_the_family_and_the_heads_are_asked_for(family: str, tmp_path: Path) -> None:
    model = tiny(family, "ForMaskedLM", **({"local_attention": 128} if family == "ModernBert" else {}))
    folder = saved(model, tmp_path)
    (folder / "config.json").unlink()
    with open_checkpoint(folder) as checkpoint:
        assert "n_heads" in (checkpoint.info.refusal or "")
    want = reference(model, IDS)
    with open_checkpoint(folder, assume={"n_heads": 5}) as checkpoint:
        trace = run_trace(checkpoint.load_model(), Inputs(ids=IDS))
    np.testing.assert_allclose(trace.attention("encoder.self", 2, 4), want.attentions[2][0, 4], atol=2e-5, rtol=0)


@pytest.mark.parametrize(
    ("family", "changes", "named"),
    [
        ("Roberta", {"is_decoder": True}, "is_decoder is true"),
        ("Roberta", {"num_attention_heads": 4}, "num_attention_heads is 4 and hidden_size is 30"),
        ("Roberta", {"max_position_embeddings": 2}, "max_position_embeddings is 2"),
        ("DistilBert", {"n_heads": 4}, "n_heads is 4 and dim is 30"),
        ("MPNet", {"relative_attention_num_buckets": 16}, "relative_attention_num_buckets is 16"),
        ("Albert", {"inner_group_num": 10**9}, "inner_group_num is 1000000000 .* at most"),
        ("Albert", {"inner_group_num": 40}, "inner_group_num is 40 .* holds only"),
        ("Albert", {"inner_group_num": 2, "num_hidden_groups": 3}, "no layer is run twice"),
        ("RoFormer", {"rotary_value": True}, "rotary_value is true"),
        ("Esm", {"is_folding_model": True}, "is_folding_model is true"),
        ("Esm", {"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ("Esm", {"token_dropout": True, "mask_token_id": None}, "no mask_token_id"),
        ("Deberta", {"talking_head": True}, "talking_head is true"),
        ("Deberta", {"embedding_size": 14}, "embedding_size is 14"),
        ("Deberta", {"pos_att_type": "p2p"}, "pos_att_type has 'p2p'"),
        ("DebertaV2", {"attention_head_size": 7}, "attention_head_size is 7"),
        ("DebertaV2", {"conv_kernel_size": 4}, "kernel_size is 4"),
        ("DebertaV2", {"max_relative_positions": 3}, "max_distance is 3"),
        ("ModernBert", {"layer_types": ["sliding_attention"]}, "layer_types has 1 entries"),
    ],
    ids=str,
)
def test_what_a_family_cannot_mean_is_refused_by_the_name_of_its_key(
    family: str, changes: dict[str, Any], named: str, tmp_path: Path
) -> None:
    model = tiny(family, "ForMaskedLM")
    with open_checkpoint(edit_config(saved(model, tmp_path), **changes)) as checkpoint:
        assert checkpoint.tensors
        with pytest.raises(ConfigError, match=named):
            checkpoint.load_model()


def test_an_unknown_pooling_is_named(tmp_path: Path) -> None:
    folder = saved(tiny("ModernBert", "ForSequenceClassification"), tmp_path)
    with open_checkpoint(edit_config(folder, classifier_pooling="max")) as checkpoint:
        assert "classifier_pooling is 'max'" in (checkpoint.info.refusal or "")
