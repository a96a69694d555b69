"""The door of a trace: what is wrong with an input is said there, naming the axis."""

from typing import Any

import numpy as np
import pytest

from core_model.errors import TraceError
from core_model.tokenize import Encoding
from core_model.trace import Inputs


def encoding(*texts: str) -> Encoding:
    n = len(texts)
    return Encoding(
        ids=tuple(range(n)),
        texts=texts,
        offsets=tuple((i, i + 1) for i in range(n)),
        type_ids=(0,) * n,
        special=(False,) * n,
        sequence=(0,) * n,
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"give either ids or embeddings"),
        ({"ids": [1], "embeddings": np.zeros((1, 4))}, r"give either ids or embeddings"),
        ({"ids": []}, r"ids is empty"),
        ({"ids": [[1, 2], [3]]}, r"ids holds lists of several lengths: expected one axis, \[tokens\]"),
        ({"embeddings": [["a"]]}, r"embeddings is no array of numbers"),
        ({"ids": [[1, 2]]}, r"ids has shape \(1, 2\): expected one axis, \[tokens\]"),
        ({"ids": [1.5, 2.0]}, r"ids holds float64 values: expected whole numbers"),
        ({"ids": [1, 2], "decoder_ids": [[3]]}, r"decoder_ids has shape \(1, 1\)"),
        ({"ids": [1, 2], "type_ids": [0]}, r"type_ids has 1 entries, but there are 2 tokens"),
        ({"ids": [1, 2], "attention_mask": [1, 1, 1]}, r"attention_mask has 3 entries, but there are 2 tokens"),
        ({"ids": [1, 2], "attention_mask": [0, 0]}, r"attention_mask is 0 everywhere"),
        ({"embeddings": np.zeros(4)}, r"embeddings has shape \(4,\): expected two axes, \[tokens, width\]"),
        ({"embeddings": np.zeros((0, 4))}, r"embeddings has shape \(0, 4\)"),
        ({"ids": [1], "decoder_embeddings": np.zeros((1, 2, 4))}, r"decoder_embeddings has shape \(1, 2, 4\)"),
        (
            {"ids": [1], "decoder_ids": [1], "decoder_embeddings": np.zeros((1, 4))},
            r"give either decoder_ids or decoder_embeddings",
        ),
        ({"ids": [1, 2], "tokens": encoding("a")}, r"tokens has 1 entries, but there are 2 tokens"),
        (
            {"ids": [1], "decoder_ids": [1, 2], "decoder_tokens": encoding("a")},
            r"decoder_tokens has 1 entries, but there are 2 decoder tokens",
        ),
    ],
)
def test_a_wrong_shape_names_its_axis(given, message):
    """bertviz#107."""
    with pytest.raises(TraceError, match=message):
        Inputs(**given)


def test_padding_is_cut_from_everything_that_goes_with_the_tokens():
    """bertviz#80: 976 tokens in 1024 positions are 976 tokens."""
    inputs: Any = Inputs(
        ids=[7, 8, 9, 0, 0],
        type_ids=[0, 0, 1, 0, 0],
        attention_mask=[1, 1, 1, 0, 0],
        tokens=encoding("a", "b", "c", "[PAD]", "[PAD]"),
    )
    assert inputs.n_tokens == 3
    assert list(inputs.ids) == [7, 8, 9]
    assert list(inputs.type_ids) == [0, 0, 1]
    assert inputs.tokens.texts == ("a", "b", "c")
    assert inputs.tokens.ids == (0, 1, 2)


def test_padding_on_the_left_is_cut_too():
    inputs: Any = Inputs(embeddings=np.arange(6.0).reshape(3, 2), attention_mask=[False, True, True])
    assert inputs.embeddings.tolist() == [[2, 3], [4, 5]]


def test_a_mask_of_ones_cuts_nothing():
    inputs: Any = Inputs(ids=(1, 2), attention_mask=(1, 1))
    assert inputs.ids.tolist() == [1, 2]


def test_inputs_are_copies_of_what_was_given():
    ids, vectors = np.array([1, 2], dtype=np.int32), np.ones((2, 3), np.float32)
    by_ids: Any = Inputs(ids=ids)
    by_vectors: Any = Inputs(embeddings=vectors)
    ids[0], vectors[0] = 9, 9
    assert list(by_ids.ids) == [1, 2]
    assert (by_vectors.embeddings == 1).all()


def test_each_stack_has_the_names_of_what_it_reads():
    """Ids and a decoder's; a text and a picture for two towers, or one of them; a picture or a sound for an encoder."""
    words, told, seen = encoding("a", "b"), encoding("c"), encoding("class", "patch 0,0", "patch 0,1")
    pixels = np.zeros((3, 2, 4))
    both: Any = Inputs(ids=[1, 2], tokens=words, decoder_ids=[3], decoder_tokens=told)
    assert (both.tokens_of("encoder"), both.tokens_of("decoder")) == (words, told)
    assert Inputs(ids=[1, 2], tokens=words).tokens_of("decoder") is words
    towers = Inputs(ids=[1, 2], tokens=words, pixels=pixels, picture_tokens=seen)
    assert (towers.tokens_of("text"), towers.tokens_of("vision")) == (words, seen)
    alone = Inputs(pixels=pixels, tokens=seen)
    assert (alone.tokens_of("text"), alone.tokens_of("vision"), alone.tokens_of("encoder")) == (None, seen, seen)
    assert Inputs(ids=[1, 2], tokens=words).tokens_of("vision") is None
    heard = Inputs(features=np.zeros((4, 6)), tokens=seen, decoder_ids=[3], decoder_tokens=told)
    assert (heard.tokens_of("encoder"), heard.tokens_of("decoder")) == (seen, told)
