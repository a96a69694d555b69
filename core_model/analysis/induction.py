"""Which heads look for what followed the same token before: induction heads (Olsson et al. 2022).

Shape letters: N rows of a block, M keys.
"""

from __future__ import annotations

import numpy as np

from core_model.analysis.blocks import row_blocks
from core_model.cancel import CancelToken
from core_model.errors import TraceError
from core_model.nn.transformer import Transformer
from core_model.results import FloatArray, read_only
from core_model.trace.inputs import Inputs
from core_model.trace.trace import run_trace
from core_model.trace.views import check_count, checked_range

_PERIOD = 32


def induction_scores(
    model: Transformer,
    *,
    period: int | None = None,
    n_sequences: int = 4,
    ids: tuple[int, int] | None = None,
    seed: int = 0,
    cancel: CancelToken | None = None,
) -> FloatArray:
    """Mean weight [layers, heads] that tokens of a repeated random sequence give to what followed them the first time.

    A sequence of `period` random ids (within the half-open range `ids`; default: all) is read twice; query i of the
    second reading should look at key i - period + 1. The default period is 32, or as long as a model can read twice.
    Raises TraceError for a model that is no decoder-only language model, and for numbers out of their limits.
    """
    stack = model.config.decoder
    if stack is None or model.config.encoder is not None:
        raise TraceError("induction is measured on decoder-only models: this one is not")
    longest = None if stack.max_length is None else stack.max_length // 2
    if period is None:
        period = _PERIOD if longest is None else min(_PERIOD, longest)
    if period < 2:
        raise TraceError(
            f"period is {period}: what followed a token the first time needs at least 2 tokens, read twice"
        )
    if longest is not None and period > longest:
        raise TraceError(f"period is {period}: expected at most {longest}, which this model can read twice")
    check_count("n_sequences", n_sequences)
    allowed = checked_range("ids", ids, stack.tokens.vocab_size)
    generator = np.random.default_rng(seed)
    second = slice(period, 2 * period - 1)
    total = np.zeros((stack.n_layers, stack.layers[0].attention.n_heads))
    for _ in range(n_sequences):
        sequence = generator.integers(allowed.start, allowed.stop, period)
        trace = run_trace(model, Inputs(ids=np.tile(sequence, 2)), cancel=cancel)
        for layer in range(total.shape[0]):
            for head in range(total.shape[1]):
                for rows, keys, weights_NM in row_blocks(trace.head("decoder.self", layer, head), cancel, rows=second):
                    total[layer, head] += weights_NM.diagonal(rows.start - period + 1 - keys.start).sum().item()
    return read_only((total / (n_sequences * (period - 1))).astype(np.float32))
