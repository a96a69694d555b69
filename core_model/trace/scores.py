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

from core_model.cancel import CancelToken
from core_model.config import MaskSpec
from core_model.nn import masks
from core_model.nn.scores import HeadInputs, normalize, scores, visible_block

_NORMALISER_SCORES = 1 << 22
"""Scores held at once while row normalisers are computed: 16 MiB."""


class HeadScores:
    """One head's scores and weights, from references to its queries and keys. Lives on the thread that computes."""

    def __init__(self, heads: HeadInputs, head: int) -> None:
        self._head = heads.head(head)
        self.n_queries, self.n_keys = heads.n_queries, heads.n_keys
        self._is_softmax = self._head.spec.normalizer == "softmax"
        self.is_product = self._head.spec.soft_cap is None and not self._head.is_biased and self._is_softmax
        """Whether its exponents are the product of `augmented` queries and keys."""
        self._row_normalizer: torch.Tensor | None = None

    @property
    def inputs(self) -> HeadInputs:
        """The queries and keys of this head alone."""
        return self._head

    @property
    def n_bytes(self) -> int:
        """Bytes this takes at most, once it has been asked, beyond the queries and keys of the trace."""
        return 4 * (self.n_queries + self.n_keys) * (self._head.spec.head_size + 1) + 4 * self.n_queries

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
        """What `to_weights` turns into weights [N, M]: see `HeadGroup.exponents`."""
        return HeadGroup((self,)).exponents(rows, cols)[0]

    def exponents_of_scores(self, rows: slice, cols: slice) -> torch.Tensor:
        """The same, whatever the scores are made of."""
        return self._moved(self.scores(rows, cols), self.row_normalizer[rows])

    def to_weights(self, e_NM: torch.Tensor) -> torch.Tensor:
        """Weights of exponents; monotone, so it may follow a maximum."""
        return e_NM.exp() if self._is_softmax else torch.relu(e_NM)

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
            known_N = self._computed_normalizer(slice(0, self.n_queries), cancel)
        self._row_normalizer = known_N
        return known_N

    def _known_normalizer(self) -> torch.Tensor | None:
        """The row normalisers [N] if they need no work: computed before, or by the kernel of the forward pass."""
        known_BHN = self._head.logsumexp_BHN
        return self._row_normalizer if known_BHN is None else _settled(known_BHN[0, 0].float())

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

    def hidden(self, rows: slice, cols: slice) -> torch.Tensor:
        """`masked` of a block. Heads that share a mask share its blocks: they are often drawn one after another."""
        if self._head.key_mask_BM is not None:
            return self.masked(rows, cols)
        start = self._head.query_start
        queries, keys = (rows.start + start, rows.stop + start), (cols.start, cols.stop)
        return _hidden_block(self._head.spec.mask, queries, keys, self._head.q_BHND.device)

    def _keys(self, cols: slice) -> torch.Tensor:
        """The indices [M] of the keys of a slice, which may step."""
        return torch.arange(*cols.indices(self.n_keys), device=self._head.q_BHND.device)

    def _moved(self, s_NM: torch.Tensor, normalizer_N: torch.Tensor) -> torch.Tensor:
        """Exponents of scores."""
        normalizer_N1 = normalizer_N[:, None]
        return s_NM - normalizer_N1 if self._is_softmax else s_NM / normalizer_N1

    @cached_property
    def augmented(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Queries [N, D + 1] with -logsumexp as last column, keys [D + 1, M] with 1: their product is the exponent."""
        width, device = self._head.spec.head_size + 1, self._head.q_BHND.device
        q_ND = torch.empty(self.n_queries, width, device=device)
        k_MD = torch.empty(self.n_keys, width, device=device)
        self.augment(q_ND, k_MD)
        return q_ND, k_MD.t()

    def augment(self, q_ND: torch.Tensor, k_MD: torch.Tensor) -> None:
        """Write `augmented` queries [N, D + 1] and keys [M, D + 1] where they are wanted."""
        normalizer_N = self.row_normalizer
        torch.mul(self._head.q_BHND[0, 0].float(), self._head.spec.scale, out=q_ND[:, :-1])
        q_ND[:, -1] = -normalizer_N.masked_fill(normalizer_N.isposinf(), 0.0)
        k_MD[:, :-1] = self._head.k_BKMD[0, 0]
        k_MD[:, -1] = 1.0


class HeadGroup:
    """A head, or heads of one attention that no edit changed: their blocks come out of one product."""

    def __init__(self, heads: Sequence[HeadScores]) -> None:
        self.heads = tuple(heads)
        self.first = self.heads[0]
        """What they share is asked of it: their mask, their normaliser."""

    def exponents(self, rows: slice, cols: slice, out: torch.Tensor | None = None) -> torch.Tensor:
        """What `to_weights` turns into weights [H, N, M], monotonically: so maxima can be taken before. Masked cells
        are -inf.

        Softmax: score - logsumexp of the row. ReLU: score / number of keys the row sees.
        """
        if not self.first.is_product:
            return torch.stack([head.exponents_of_scores(rows, cols) for head in self.heads], out=out)
        q_HND, k_HDM = self._augmented
        e_HNM = torch.bmm(q_HND[:, rows], k_HDM[:, :, cols], out=out)
        if self.first.coverage(rows, cols) != "all":
            e_HNM.masked_fill_(self.first.hidden(rows, cols), float("-inf"))
        return e_HNM

    @cached_property
    def _augmented(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Those of the heads: queries [H, N, D + 1] and keys [H, D + 1, M]; no copies for a lone head."""
        if len(self.heads) == 1:
            q_ND, k_DM = self.first.augmented
            return q_ND[None], k_DM[None]
        n_heads, width, device = len(self.heads), self.first.inputs.spec.head_size + 1, self.first.inputs.q_BHND.device
        q_HND = torch.empty(n_heads, self.first.n_queries, width, device=device)
        k_HMD = torch.empty(n_heads, self.first.n_keys, width, device=device)
        for head, q_ND, k_MD in zip(self.heads, q_HND, k_HMD, strict=True):
            head.augment(q_ND, k_MD)
        return q_HND, k_HMD.transpose(1, 2)


@lru_cache(maxsize=16)
def _hidden_block(
    mask: MaskSpec, queries: tuple[int, int], keys: tuple[int, int], device: torch.device
) -> torch.Tensor:
    """True [N, M] where a query position of a range may not see a key of another."""
    query_N, key_M = (torch.arange(*span, device=device) for span in (queries, keys))
    return ~masks.visible(mask, query_N, key_M)


def _settled(logsumexp_N: torch.Tensor) -> torch.Tensor:
    """Log-sum-exps to subtract: +inf for a row that sees no key, whose weights are 0; NaN where scores overflow."""
    overflows_N, sees_none_N = logsumexp_N.isposinf(), logsumexp_N.isneginf()
    return logsumexp_N.masked_fill(overflows_N, float("nan")).masked_fill(sees_none_N, float("inf"))
