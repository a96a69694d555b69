"""The attention of one head, evaluated for any block of rows and columns, exactly, without ever holding the whole.

A row's normaliser is computed once and kept (or taken from the forward pass, whose kernel computes it anyway); from
then on a weight is exp(score - logsumexp) wherever it is asked for. Everything drawn or written comes from
`HeadScores`.

Shape letters: N rows (queries) of a block, M columns (keys) of a block, D head size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache

import torch
from torch.nn import functional

from core_model.cancel import CancelToken
from core_model.config import MaskSpec
from core_model.nn import masks
from core_model.nn.product import grouped_product
from core_model.nn.scores import HeadInputs, normalize, scores, visible_block

_NORMALISER_SCORES = 1 << 21
"""Scores held at once while row normalisers are computed: 8 MiB."""
_ROWS_STEP, _KEYS_STEP = 16, 128
"""Of what a block has multiples of, so that there are few shapes of them: see `core_model.nn.product.few_sizes`."""


class HeadScores:
    """One head's scores and weights, from references to its queries and keys. Lives on the thread that computes."""

    def __init__(self, heads: HeadInputs, head: int) -> None:
        self._head = heads.head(head)
        self.n_queries, self.n_keys = heads.n_queries, heads.n_keys
        self._is_softmax = self._head.spec.normalizer == "softmax"
        self.is_product = self._head.spec.soft_cap is None and not self._head.is_biased and self._is_softmax
        """Whether its exponents are products of queries and keys, less the row normalisers."""
        self._row_normalizer: torch.Tensor | None = None

    @property
    def inputs(self) -> HeadInputs:
        """The queries and keys of this head alone."""
        return self._head

    @property
    def n_bytes(self) -> int:
        """Bytes this takes at most, once it has been asked, beyond the queries and keys of the trace."""
        return 4 * self.n_queries

    def weights(self, rows: slice, cols: slice) -> torch.Tensor:
        """Exact attention weights [N, M] in float32; masked cells are 0."""
        if cols == slice(0, self.n_keys):
            return self._whole_rows(rows)
        return self.to_weights(self.exponents(rows, cols))

    def _whole_rows(self, rows: slice) -> torch.Tensor:
        """Weights of rows over all keys, each normalised by its own scores.

        A rounded log-sum-exp costs precision where scores are large: 2e-5 in a weight at scores of 100.
        """
        key_M = torch.arange(self.n_keys, device=self._head.q_BHND.device)
        weights_NM = torch.empty(rows.stop - rows.start, self.n_keys, device=key_M.device)
        n_rows = max(16, _NORMALISER_SCORES // self.n_keys)
        for start in range(rows.start, rows.stop, n_rows):
            block = slice(start, min(start + n_rows, rows.stop))
            s_BHNM = scores(self._head, block, key_M)
            weights_NM[start - rows.start : block.stop - rows.start] = normalize(s_BHNM, self._head)[0, 0]
        return weights_NM

    def sample(self, rows: slice, cols: slice, cancel: CancelToken | None = None) -> torch.Tensor:
        """The same for slices that step over cells, without waiting for the normalisers of the rows between."""
        known_N = self._known_normalizer()
        normalizer_N = self._computed_normalizer(rows, cancel) if known_N is None else known_N[rows]
        return self.to_weights(self._moved(self.scores(rows, cols), normalizer_N))

    def scores(self, rows: slice, cols: slice) -> torch.Tensor:
        """Scores [N, M] in float32 before the normaliser; masked cells are -inf."""
        return scores(self._head, rows, self._keys(cols))[0, 0]

    def masked(self, rows: slice, cols: slice) -> torch.Tensor:
        """True [N, M] where the query may not see the key."""
        return ~visible_block(self._head, rows, self._keys(cols))[0, 0]

    def coverage(self, rows: slice, cols: slice) -> str:
        """Whether the rows see "all", "some" or "none" of the columns."""
        if self._head.key_mask_BM is not None:
            return "some"
        start = self._head.query_start
        query_positions = range(rows.start + start, rows.stop + start)
        return masks.coverage(self._head.spec.mask, query_positions, range(cols.start, cols.stop))

    def exponents(self, rows: slice, cols: slice) -> torch.Tensor:
        """What `to_weights` turns into weights [N, M], monotonically: so maxima can be taken before. Masked cells
        are -inf.

        Softmax: score - logsumexp of the row. ReLU: score / number of keys the row sees.
        """
        return self._moved(self.scores(rows, cols), self.row_normalizer[rows])

    def to_weights(self, exponents: torch.Tensor) -> torch.Tensor:
        """Weights in the place of exponents of any shape; monotone, so it may follow a maximum."""
        return exponents.exp_() if self._is_softmax else exponents.relu_()

    @property
    def row_normalizer(self) -> torch.Tensor:
        """Each row's log-sum-exp [N], sink included; for ReLU its number of visible keys. See `prepare`."""
        return self.prepare()

    @property
    def is_prepared(self) -> bool:
        """Whether the row normalisers need no work: computed before, or by the kernel of the forward pass."""
        return self._row_normalizer is not None or self._head.logsumexp_BHN is not None

    def prepare(self, cancel: CancelToken | None = None) -> torch.Tensor:
        """The row normalisers, computed once: any block is quick from then on. Raises Cancelled between blocks."""
        known_N = self._known_normalizer()
        if known_N is None:
            known_N = self._row_normalizer = self._computed_normalizer(slice(0, self.n_queries), cancel)
        return known_N

    def _known_normalizer(self) -> torch.Tensor | None:
        """The row normalisers [N] if they need no work: computed before, or by the kernel of the forward pass."""
        if self._row_normalizer is None and self._head.logsumexp_BHN is not None:
            self._row_normalizer = _settled(self._head.logsumexp_BHN[0, 0].float())
        return self._row_normalizer

    def _computed_normalizer(self, rows: slice, cancel: CancelToken | None) -> torch.Tensor:
        """Those of the rows of a slice, in one streaming pass over blocks of them."""
        n_rows = max(16, _NORMALISER_SCORES // self.n_keys)
        device = self._head.q_BHND.device
        wanted = range(*rows.indices(self.n_queries))
        # Small results made between large blocks would keep the blocks' memory from being used again.
        normalizer_N = torch.empty(len(wanted), device=device)
        for start in range(0, len(wanted), n_rows):
            if cancel is not None:
                cancel.check()
            block = wanted[start : start + n_rows]
            first, last = (row + self._head.query_start for row in (block[0], block[-1]))
            spans = masks.key_spans(self._head.spec.mask, first, last, self.n_keys)
            key_M = torch.cat([torch.arange(a, b, device=device) for a, b in spans])
            s_NM = scores(self._head, slice(block.start, block.stop, block.step), key_M)[0, 0]
            normalizer_N[start : start + n_rows] = self._normalizer_of(s_NM)
        return normalizer_N

    def _normalizer_of(self, s_NM: torch.Tensor) -> torch.Tensor:
        """Normalisers [N] of rows of scores; those of rows that see no key leave their weights at 0."""
        if not self._is_softmax:
            return (~s_NM.isneginf()).sum(-1).clamp(min=1).float()
        logsumexp_N = s_NM.logsumexp(-1)
        if self._head.sinks_H is not None:
            logsumexp_N = torch.logaddexp(logsumexp_N, self._head.sinks_H.float())
        return _settled(logsumexp_N)

    def reach(self, rows: slice) -> slice:
        """The keys between the first and the last that any of the rows may see; those outside are masked."""
        start = self._head.query_start
        spans = masks.key_spans(self._head.spec.mask, rows.start + start, rows.stop - 1 + start, self.n_keys)
        return slice(spans[0][0], spans[-1][1]) if spans else slice(0, 0)

    def hide(self, e_MHN: torch.Tensor, rows: slice, cols: slice) -> None:
        """Make -inf of exponents of masked cells, in their place. Heads that share a mask share its blocks."""
        if self._head.key_mask_BM is not None:
            e_MHN.masked_fill_(self.masked(rows, cols).t()[:, None], float("-inf"))
            return
        mask, start = self._head.spec.mask, self._head.query_start
        queries = range(rows.start + start, rows.stop + start)
        seen = masks.seen_by_all(mask, queries, range(cols.start, cols.stop))
        for first, stop in ((cols.start, seen.start), (seen.stop, cols.stop)):
            for key in range(first, stop, len(queries)):
                keys = range(key, min(key + len(queries), stop))
                # Where only distances count, all blocks that lie so to each other are hidden alike.
                origin = 0 if mask.n_prefix or mask.n_global else min(queries.start, keys.start)
                kept_M1N, infinite_M1N = _hiding_bits(mask, _less(queries, origin), _less(keys, origin), e_MHN.device)
                bits_MHN = e_MHN[key - cols.start : keys.stop - cols.start].view(torch.int32)
                bits_MHN.bitwise_and_(kept_M1N).bitwise_or_(infinite_M1N)

    def _keys(self, cols: slice) -> torch.Tensor:
        """The indices [M] of the keys of a slice, which may step."""
        return torch.arange(*cols.indices(self.n_keys), device=self._head.q_BHND.device)

    def _moved(self, s_NM: torch.Tensor, normalizer_N: torch.Tensor) -> torch.Tensor:
        """Exponents in the place of scores."""
        normalizer_N1 = normalizer_N[:, None]
        if not self._is_softmax:
            return s_NM.div_(normalizer_N1)
        hidden_NM = s_NM.isneginf() if normalizer_N.isnan().any() else None
        e_NM = s_NM.sub_(normalizer_N1)
        return e_NM if hidden_NM is None else e_NM.masked_fill_(hidden_NM, float("-inf"))


class HeadGroup:
    """Heads of one attention that no edit changed, or one that was, over some keys: their blocks come out of one
    product."""

    def __init__(self, inputs: HeadInputs, heads: Sequence[HeadScores], cols: slice) -> None:
        """`inputs` of these H heads and the K key heads they share."""
        self._inputs, self.heads, self._cols = inputs, tuple(heads), cols
        self.first = self.heads[0]
        """What they share is asked of it: their mask, their normaliser."""

    def exponents(self, rows: slice, cols: slice) -> torch.Tensor:
        """Exponents of all heads, as of `HeadScores`, for a block of rows and keys: [M, H, N], keys before queries."""
        if not self.first.is_product:
            return torch.stack([head.exponents(rows, cols) for head in self.heads]).permute(2, 0, 1)
        n_cols, n_key_heads = cols.stop - cols.start, self._keys.shape[1]
        q_HND, shift_HN = self._inputs.q_BHND[0, :, rows].float(), self._shift[:, rows]
        n_rows = shift_HN.shape[1]
        missing = -n_rows % _ROWS_STEP
        if missing:
            q_HND, shift_HN = functional.pad(q_HND, (0, 0, 0, missing)), functional.pad(shift_HN, (0, missing))
        first = cols.start - self._cols.start
        e_MKE = grouped_product(
            self._keys[first : first + n_cols + -n_cols % _KEYS_STEP],
            q_HND.unflatten(0, (n_key_heads, -1)).flatten(1, 2),
            shift_HN.unflatten(0, (n_key_heads, -1)).flatten(1, 2),
        )
        e_MHN = e_MKE[:n_cols].unflatten(2, (-1, n_rows + missing)).flatten(1, 2)[..., :n_rows]
        self.first.hide(e_MHN, rows, cols)
        return e_MHN

    @cached_property
    def _shift(self) -> torch.Tensor:
        """What is added to the scores of each row [H, N]: -logsumexp, and nothing where it sees no key."""
        normalizer_HN = torch.stack([head.row_normalizer for head in self.heads])
        return -normalizer_HN.masked_fill(normalizer_HN.isposinf(), 0.0)

    @cached_property
    def _keys(self) -> torch.Tensor:
        """The keys [M, K, D] times the scale, with as many zeros behind them as a block may reach over."""
        k_MKD = self._inputs.k_BKMD[0, :, self._cols].transpose(0, 1)
        keys_MKD = torch.empty(len(k_MKD) + _KEYS_STEP, *k_MKD.shape[1:], device=k_MKD.device)
        keys_MKD[: len(k_MKD)], keys_MKD[len(k_MKD) :] = k_MKD, 0.0
        return keys_MKD.mul_(self._inputs.spec.scale)


@lru_cache(maxsize=16)
def _hiding_bits(
    mask: MaskSpec, queries: range, keys: range, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """The bits [M, 1, N] of a float32 to keep, and then to set, so that it is -inf where a query position of a range
    may not see a key of another: masked_fill_ in a quarter of its time on a CPU, and right for a NaN too."""
    query_N, key_M = (torch.arange(span.start, span.stop, device=device) for span in (queries, keys))
    kept_M1N = -masks.visible(mask, query_N, key_M).t()[:, None].int().contiguous()
    infinity = torch.tensor(float("-inf"), device=device).view(torch.int32)
    return kept_M1N, ~kept_M1N & infinity


def _less(positions: range, origin: int) -> range:
    return range(positions.start - origin, positions.stop - origin)


def _settled(logsumexp_N: torch.Tensor) -> torch.Tensor:
    """Log-sum-exps to subtract: +inf for a row that sees no key, whose weights are 0; NaN where scores overflow."""
    overflows_N, sees_none_N = logsumexp_N.isposinf(), logsumexp_N.isneginf()
    return logsumexp_N.masked_fill(overflows_N, float("nan")).masked_fill(sees_none_N, float("inf"))
