"""The attention of one head, evaluated for any block of rows and columns, exactly, without ever holding the whole.

A row's normaliser is computed once and kept (or taken from the forward pass, which computes it anyway); from then on a
weight is exp(score - logsumexp) wherever it is asked for. Rows, tiles, samples, statistics and files come from
`HeadScores`; pooled pictures from `core_model.trace.head_group`, with the same normalisers.

Shape letters: N rows (queries) of a block, M columns (keys) of a block, D head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from core_model.cancel import CancelToken, Progress
from core_model.nn import masks
from core_model.nn.scores import HeadInputs, normalize, scores, visible_block
from core_model.trace.head_group import HeadGroup, head_groups, to_subtract

_BLOCK_SCORES = 1 << 21
"""Scores of rows held at once: 8 MiB."""


class HeadScores:
    """One head's scores and weights, from references to its queries and keys. Lives on the thread that computes."""

    def __init__(self, heads: HeadInputs, head: int) -> None:
        self._head = heads.head(head)
        self.n_queries, self.n_keys = heads.n_queries, heads.n_keys
        self._row_normalizer: torch.Tensor | None = None

    @property
    def inputs(self) -> HeadInputs:
        """The queries and keys of this head alone."""
        return self._head

    @property
    def n_bytes(self) -> int:
        """Bytes this takes at most, once it has been asked, beyond the queries and keys of the trace."""
        return 4 * self.n_queries

    def weights(
        self, rows: slice, cols: slice, cancel: CancelToken | None = None, progress: Progress | None = None
    ) -> torch.Tensor:
        """Exact attention weights [N, M] in float32; masked cells are 0. Raises Cancelled between blocks of rows.

        Whole rows are normalised by their own scores: a rounded log-sum-exp costs precision where scores are large,
        2e-5 in a weight at scores of 100.
        """
        is_whole, n = cols == slice(0, self.n_keys), rows.stop - rows.start
        normalizer_N = None if is_whole else self.prepare(cancel)
        n_cols, device = cols.stop - cols.start, self._head.q_BHND.device
        weights_NM = torch.empty(n, n_cols, dtype=torch.float32, device=device)
        n_rows = max(16, _BLOCK_SCORES // n_cols)
        for start in range(0, n, n_rows):
            if cancel is not None:
                cancel.check()
            stop = min(start + n_rows, n)
            block = slice(rows.start + start, rows.start + stop)
            s_BHNM = scores(self._head, block, [range(cols.start, cols.stop)])
            weights_NM[start:stop] = (
                normalize(s_BHNM, self._head)[0, 0]
                if normalizer_N is None
                else self._weights_of(s_BHNM[0, 0], normalizer_N[block])
            )
            if progress is not None:
                progress(stop / n)
        return weights_NM

    def sample(self, rows: slice, cols: slice, cancel: CancelToken | None = None) -> torch.Tensor:
        """The same for slices that step over cells, without waiting for the normalisers of the rows between."""
        known_N = self._known_normalizer()
        normalizer_N = HeadGroup(self._head).normalizers(rows, cancel)[0] if known_N is None else known_N[rows]
        return self._weights_of(self.scores(rows, cols), normalizer_N)

    def scores(self, rows: slice, cols: slice) -> torch.Tensor:
        """Scores [N, M] in float32 before the normaliser; masked cells are -inf."""
        return scores(self._head, rows, [range(*cols.indices(self.n_keys))])[0, 0]

    def masked(self, rows: slice, cols: slice) -> torch.Tensor:
        """True [N, M] where the query may not see the key."""
        return ~visible_block(self._head, rows, [range(*cols.indices(self.n_keys))])[0, 0]

    def sees_any(self) -> torch.Tensor:
        """True [N] where the query may see any key: everywhere, unless all it could see is padding."""
        device = self._head.q_BHND.device
        seen_N = torch.ones(self.n_queries, dtype=torch.bool, device=device)
        if self._head.key_mask_BM is not None:
            n_rows = max(1, _BLOCK_SCORES // self.n_keys)
            for start in range(0, self.n_queries, n_rows):
                rows = slice(start, min(start + n_rows, self.n_queries))
                seen_N[rows] = visible_block(self._head, rows, [range(self.n_keys)])[0, 0].any(-1)
        return seen_N

    @property
    def row_normalizer(self) -> torch.Tensor:
        """Each row's log-sum-exp [N], sink included; for ReLU its number of visible keys. See `prepare`."""
        return self.prepare()

    @property
    def is_prepared(self) -> bool:
        """Whether the row normalisers need no work: computed before, or by the forward pass."""
        return self._row_normalizer is not None or self._head.logsumexp_BHN is not None

    def prepare(self, cancel: CancelToken | None = None) -> torch.Tensor:
        """The row normalisers, computed once: any block is quick from then on. Raises Cancelled between blocks."""
        known_N = self._known_normalizer()
        if known_N is None:
            known_N = self._row_normalizer = HeadGroup(self._head).normalizers(slice(0, self.n_queries), cancel)[0]
        return known_N

    def keep(self, normalizer_N: torch.Tensor) -> None:
        """Row normalisers that were computed together with those of other heads."""
        self._row_normalizer = normalizer_N

    def _known_normalizer(self) -> torch.Tensor | None:
        """The row normalisers [N], if `is_prepared`."""
        if self._row_normalizer is None and self._head.logsumexp_BHN is not None:
            self._row_normalizer = to_subtract(self._head.logsumexp_BHN[0, 0].float())
        return self._row_normalizer

    def reach(self, rows: slice) -> list[slice]:
        """The pieces of keys that any of the rows may see, in order; those outside are masked."""
        positions = self._head.positions(rows)
        spans = masks.key_spans(self._head.spec.mask, positions[0], positions[-1], self.n_keys)
        return [slice(*span) for span in spans]

    def _weights_of(self, s_NM: torch.Tensor, normalizer_N: torch.Tensor) -> torch.Tensor:
        """Weights in the place of scores: exp(score - logsumexp), or relu(score) / number of keys the row sees."""
        if self._head.spec.normalizer == "relu":
            return s_NM.div_(normalizer_N[:, None]).relu_()
        hidden_NM = s_NM.isneginf() if normalizer_N.isnan().any() else None
        weights_NM = s_NM.sub_(normalizer_N[:, None]).exp_()
        return weights_NM if hidden_NM is None else weights_NM.masked_fill_(hidden_NM, 0.0)


def row_entropy(sum_N: torch.Tensor, entr_N: torch.Tensor) -> torch.Tensor:
    """Entropy [N] in nat of rows of weights w divided by their sum S: log S - (sum_j w_j log w_j) / S (Shannon 1948).

    From each row's S and -sum_j w_j log w_j, which may be summed over pieces of its keys. What learned sinks and ReLU
    leave counts as softmax does: by how the keys share it. NaN where S is 0.
    """
    return (sum_N.log() + entr_N / sum_N).clamp_(min=0)  # rounding may leave a little less


def prepare_together(heads: HeadInputs, each: Sequence[HeadScores], cancel: CancelToken | None = None) -> None:
    """The row normalisers of all heads of one attention, those at once that share a product."""
    for together, inputs in head_groups(heads):
        if not all(head.is_prepared for head in each[together]):
            normalizer_HN = HeadGroup(inputs).normalizers(slice(0, heads.n_queries), cancel)
            for head, normalizer_N in zip(each[together], normalizer_HN, strict=True):
                head.keep(normalizer_N.clone())
