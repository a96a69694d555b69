"""From word pieces to words: attention summed over the pieces of a key word, averaged over those of a query word.

So a row of words still sums to 1 (Clark et al. 2019, section 4.1).

Shape letters: N queries, M keys, R query words, W words.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from core_model.analysis.blocks import row_blocks
from core_model.cancel import CancelToken
from core_model.errors import TraceError
from core_model.results import FloatArray, read_only
from core_model.tokenize import Encoding
from core_model.trace.trace import Trace
from core_model.trace.views import checked_range


def word_of_token(tokens: Encoding, text: str, pair: str | None = None) -> tuple[int, ...]:
    """The word each token belongs to, from 0. White space separates words; special tokens stand alone."""
    words: list[int] = []
    word, previous = -1, None
    for span, sequence in zip(tokens.offsets, tokens.sequence, strict=True):
        source = pair if sequence == 1 else text
        continues = (
            span is not None
            and previous is not None
            and previous[1] == sequence
            and source is not None
            and not any(c.isspace() for c in source[previous[0] : span[0] + 1])
        )
        word += 0 if continues else 1
        words.append(word)
        previous = None if span is None else (_last_letter(source, span), sequence)
    return tuple(words)


def _last_letter(text: str | None, span: tuple[int, int]) -> int:
    """Index of the last character of a token that is not white space; its start where it is all white space."""
    end = span[1]
    while text is not None and end > span[0] + 1 and text[end - 1].isspace():
        end -= 1
    return max(span[0], end - 1)


def merge_words(
    trace: Trace,
    site: str,
    layer: int,
    head: int,
    query_words: Sequence[int],
    key_words: Sequence[int],
    cancel: CancelToken | None = None,
    *,
    words: tuple[int, int] | None = None,
) -> FloatArray:
    """One head's attention between words [R, W]: summed over a key word's tokens, averaged over a query word's.

    `query_words` and `key_words` give the word of every token, ascending from 0. `words` is the half-open range of the
    R query words wanted, all by default: of a long text not more than can be held. Raises TraceError where the words
    are not those of the tokens.
    """
    _, _, n_queries, n_keys = trace.shape(site)
    query_N = _checked("query_words", query_words, n_queries)
    key_M = _checked("key_words", key_words, n_keys)
    wanted = checked_range("words", words, int(query_N[-1]) + 1)
    first, stop = torch.searchsorted(query_N, torch.tensor([wanted.start, wanted.stop])).tolist()
    merged_RW = torch.zeros(wanted.stop - wanted.start, int(key_M[-1]) + 1, dtype=torch.float32)
    for rows, keys, weights_NM in row_blocks(trace.head(site, layer, head), cancel, rows=slice(first, stop)):
        by_key_NW = torch.zeros(weights_NM.shape[0], merged_RW.shape[1], dtype=torch.float32)
        by_key_NW.index_add_(1, key_M[keys], weights_NM.cpu())
        merged_RW.index_add_(0, query_N[rows] - wanted.start, by_key_NW)
    return read_only((merged_RW / query_N.bincount()[wanted, None]).numpy())


def _checked(name: str, words: Sequence[int], n: int) -> torch.Tensor:
    word_N = torch.tensor(list(words))
    if len(word_N) != n:
        raise TraceError(f"{name} has {len(word_N)} entries: there are {n} tokens, and each is in one word")
    if word_N[0] != 0 or not ((word_N.diff() == 0) | (word_N.diff() == 1)).all():
        raise TraceError(f"{name} must count the words from 0, each the same as the one before it or the next")
    return word_N
