"""Models of five families with transformers' own weights copied over by hand: the same logits and attention.

Logits agree to 2e-4 of their standard deviation, attention to 2e-5.
"""

import logging

import numpy as np
import pytest
import torch

from core_model.trace import Inputs, Trace, run_trace
from tests.core_model.references.bert import BERT
from tests.core_model.references.family import HEADS, LAYERS, VOCAB
from tests.core_model.references.gpt2 import GPT2
from tests.core_model.references.llama import LLAMA
from tests.core_model.references.marian import MARIAN
from tests.core_model.references.t5 import T5

IDS = np.random.default_rng(0).integers(0, VOCAB, 40)
TARGET = np.random.default_rng(1).integers(0, VOCAB, 15)


@pytest.fixture(autouse=True, scope="module")
def quiet_transformers():
    """Their advice about token ids of toy vocabularies is not ours to follow."""
    logger = logging.getLogger("transformers")
    level = logger.level
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(level)


def assert_attention_equal(trace: Trace, site: str, theirs: tuple[torch.Tensor, ...]) -> None:
    assert trace.shape(site)[0] == len(theirs) == LAYERS
    sharpest = 0.0
    for layer, weights_BHNM in enumerate(theirs):
        for head in range(HEADS):
            expected = weights_BHNM[0, head].numpy()
            np.testing.assert_allclose(trace.attention(site, layer, head), expected, atol=2e-5, rtol=0)
            sharpest = max(sharpest, float(np.median(expected.max(-1))) * expected.shape[1])
    assert sharpest > 1.5, "attention is too flat to tell heads apart"


def assert_logits_equal(trace: Trace, theirs: torch.Tensor) -> None:
    assert trace.logits is not None
    np.testing.assert_allclose(trace.logits, theirs[0].numpy(), atol=2e-4 * float(theirs.std()), rtol=0)


@pytest.mark.parametrize(
    ("family", "site"),
    [(GPT2, "decoder.self"), (LLAMA, "decoder.self"), (BERT, "encoder.self")],
    ids=["gpt2", "llama", "bert"],
)
def test_a_model_of_one_stack_agrees(family, site):
    reference, ours = family.models()
    with torch.no_grad():
        expected = reference(torch.from_numpy(IDS)[None], output_attentions=True)
    trace = run_trace(ours, Inputs(ids=IDS))
    assert trace.sites == (site,)
    assert_logits_equal(trace, expected.logits)
    assert_attention_equal(trace, site, expected.attentions)


def test_bert_agrees_on_two_segments_with_padding():
    """bertviz#80: padding is cropped; what is left is what BERT gives real tokens of a padded input."""
    reference, ours = BERT.models()
    types, mask = np.repeat([0, 1], 20), (np.arange(40) < 33) * 1
    tensors = {name: torch.from_numpy(a)[None] for name, a in (("token_type_ids", types), ("attention_mask", mask))}
    with torch.no_grad():
        expected = reference(torch.from_numpy(IDS)[None], output_attentions=True, **tensors)
    trace = run_trace(ours, Inputs(ids=IDS, type_ids=types, attention_mask=mask))
    assert trace.shape("encoder.self") == (LAYERS, HEADS, 33, 33)
    assert_logits_equal(trace, expected.logits[:, :33])
    assert_attention_equal(trace, "encoder.self", tuple(w[..., :33, :33] for w in expected.attentions))


@pytest.mark.parametrize("family", [T5, MARIAN], ids=["t5", "marian"])
def test_an_encoder_decoder_agrees_at_all_three_sites(family):
    """Opus-MT#81, transformers#22538: cross-attention of any layer and head."""
    reference, ours = family.models()
    with torch.no_grad():
        expected = reference(
            input_ids=torch.from_numpy(IDS)[None],
            decoder_input_ids=torch.from_numpy(TARGET)[None],
            output_attentions=True,
        )
    trace = run_trace(ours, Inputs(ids=IDS, decoder_ids=TARGET))
    assert trace.sites == ("encoder.self", "decoder.self", "decoder.cross")
    assert trace.shape("decoder.cross") == (LAYERS, HEADS, len(TARGET), len(IDS))
    assert_logits_equal(trace, expected.logits)
    assert_attention_equal(trace, "encoder.self", expected.encoder_attentions)
    assert_attention_equal(trace, "decoder.self", expected.decoder_attentions)
    assert_attention_equal(trace, "decoder.cross", expected.cross_attentions)


def test_an_encoder_decoder_agrees_on_a_padded_source():
    reference, ours = MARIAN.models()
    mask = (np.arange(40) < 29) * 1
    with torch.no_grad():
        expected = reference(
            input_ids=torch.from_numpy(IDS)[None],
            attention_mask=torch.from_numpy(mask)[None],
            decoder_input_ids=torch.from_numpy(TARGET)[None],
            output_attentions=True,
        )
    trace = run_trace(ours, Inputs(ids=IDS, decoder_ids=TARGET, attention_mask=mask))
    assert_logits_equal(trace, expected.logits)
    assert_attention_equal(trace, "decoder.cross", tuple(w[..., :29] for w in expected.cross_attentions))
