"""Some heads of one attention at a time: blocks of their scores, keys before queries, each block out of one product.

Pictures and row normalisers are made of these. What a score is stands in `core_model.nn.scores`; here it is computed
in place, in the order in which the fast product leaves it.

Shape letters: H heads, K key heads they share, N rows (queries) and M columns (keys) of a block, E rows filled up,
D head size.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache

import torch
from torch.nn import functional

from core_model.cancel import CancelToken
from core_model.config import MaskSpec
from core_model.nn import masks
from core_model.nn.product import grouped_product
from core_model.nn.scores import HeadInputs, bias_block, visible_block

_BLOCK_ROWS, _BLOCK_KEYS, _BLOCK_SCORES = 512, 4096, 1 << 22
"""Rows and keys of a block of one head, and scores of a block of any number of them: 16 MiB of float32."""
_GROUP = 12
"""Heads that are computed together at most."""
_GROUP_BYTES = 1 << 26
"""What the keys of a group may take. Those of one head may take more: they come alone."""
_HIDDEN_KEYS = 256
"""Keys hidden at once at least: a few rows may have very many to hide."""
_ROWS_STEP, _KEYS_STEP = 16, 128
"""Of what a block has multiples of, so that there are few shapes of them: see `core_model.nn.product.few_sizes`."""


class HeadGroup:
    """Heads of one attention that no edit changed, or one that was, over some keys; all by default.

    `cols` are the keys whose blocks may be asked for, `gain_M` what the weights of each key are multiplied by.
    """

    def __init__(self, heads: HeadInputs, cols: slice | None = None, gain_M: torch.Tensor | None = None) -> None:
        self._heads, self._cols = heads, slice(0, heads.n_keys) if cols is None else cols
        self._gain_M = gain_M
        self.n_heads, self.device = heads.q_BHND.shape[1], heads.q_BHND.device
        self._is_softmax = heads.spec.normalizer == "softmax"
        self.n_block_rows = max(1, min(_BLOCK_ROWS, 3 * _BLOCK_ROWS // self.n_heads))
        """Rows of a block that is quick to compute: few of each of many heads, for under a causal mask the last square
        of a block is half hidden."""

    def n_block_cols(self, n_rows: int) -> int:
        """Keys of a block of so many rows that is quick to compute and fits into the processor's cache."""
        return max(1, min(_BLOCK_KEYS, _BLOCK_SCORES // (n_rows * self.n_heads)))

    def spans(self, rows: slice) -> list[tuple[int, int]]:
        """The ranges of keys that any of the rows may see, in order; those outside are masked."""
        positions = self._heads.positions(rows)
        return masks.key_spans(self._heads.spec.mask, positions[0], positions[-1], self._heads.n_keys)

    def exponents(self, rows: slice, cols: slice, normalizer_HN: torch.Tensor) -> torch.Tensor:
        """What `to_weights` turns into weights [M, H, N], monotonically: so maxima can be taken before. Masked cells
        are -inf; `normalizer_HN` are those of all rows.

        Softmax: score - logsumexp of the row + log gain. ReLU: score / number of keys the row sees * gain.
        """
        normalizer_HN = normalizer_HN[:, rows]
        if self._is_softmax:
            e_MHN = self._scores(rows, cols, -normalizer_HN)
        else:
            e_MHN = self._scores(rows, cols, torch.zeros_like(normalizer_HN)).div_(normalizer_HN)
        if self._gain_M is not None:
            gain_M11 = self._gain_M[cols, None, None]
            # A gain of 0 leaves a weight of 0, as -1e30 does, and does not mask; one without end must not show what is.
            e_MHN = e_MHN.add_(gain_M11.log().clamp_(min=-1e30)) if self._is_softmax else e_MHN.mul_(gain_M11)
            self._hide(e_MHN, rows, cols)
        return e_MHN

    def to_weights(self, exponents: torch.Tensor) -> torch.Tensor:
        """Weights in the place of exponents of any shape; monotone, so it may follow a maximum."""
        return exponents.exp_() if self._is_softmax else exponents.relu_()

    def normalizers(self, rows: slice, cancel: CancelToken | None = None) -> torch.Tensor:
        """Each row's log-sum-exp [H, N], sink included; for ReLU the number of keys it sees. `rows` may step.

        +inf for a row that sees no key, whose weights are 0; NaN where scores overflow. One pass over blocks; raises
        Cancelled between them.
        """
        wanted = range(*rows.indices(self._heads.n_queries))
        # Small results made between large blocks would keep the blocks' memory from being used again.
        found_HN = torch.empty(self.n_heads, len(wanted), dtype=torch.float32, device=self.device)
        fill = self._fill_logsumexp if self._is_softmax else self._fill_visible
        for first in range(0, len(wanted), self.n_block_rows):
            block = wanted[first : first + self.n_block_rows]
            fill(slice(block.start, block.stop, block.step), found_HN[:, first : first + len(block)], cancel)
        return to_subtract(found_HN) if self._is_softmax else found_HN

    def _fill_logsumexp(self, rows: slice, logsumexp_HN: torch.Tensor, cancel: CancelToken | None) -> None:
        logsumexp_HN.fill_(float("-inf"))
        if self._heads.sinks_H is not None:
            logsumexp_HN.copy_(self._heads.sinks_H[:, None])
        no_shift_HN = torch.zeros_like(logsumexp_HN)
        for cols in self._blocks_of_keys(rows, cancel):
            s_MHN = self._scores(rows, cols, no_shift_HN)
            peak_HN = s_MHN.amax(0)
            peak_HN.masked_fill_(peak_HN.isneginf(), 0.0)
            sum_HN = s_MHN.sub_(peak_HN).exp_().sum(0)
            torch.logaddexp(logsumexp_HN, sum_HN.log_().add_(peak_HN), out=logsumexp_HN)

    def _fill_visible(self, rows: slice, count_HN: torch.Tensor, cancel: CancelToken | None) -> None:
        mask = self._heads.spec.mask
        count_HN.zero_()
        for cols in self._blocks_of_keys(rows, cancel):
            keys = range(cols.start, cols.stop)
            if self._heads.key_mask_BM is None and masks.seen_by_all(mask, self._heads.positions(rows), keys) == keys:
                count_HN += len(keys)
            else:
                count_HN += visible_block(self._heads, rows, [range(cols.start, cols.stop)])[0, 0].sum(-1)
        count_HN.clamp_(min=1)

    def _blocks_of_keys(self, rows: slice, cancel: CancelToken | None) -> Iterator[slice]:
        """Those that the rows may see."""
        n_cols = self.n_block_cols(len(self._heads.positions(rows)))
        for start, stop in self.spans(rows):
            for first in range(start, stop, n_cols):
                if cancel is not None:
                    cancel.check()
                yield slice(first, min(first + n_cols, stop))

    def _scores(self, rows: slice, cols: slice, shift_HN: torch.Tensor) -> torch.Tensor:
        """Scores plus the shift of their row [M, H, N]; masked cells are -inf."""
        assert self._cols.start <= cols.start and cols.stop <= self._cols.stop
        spec, n_rows = self._heads.spec, shift_HN.shape[1]
        n_cols, n_key_heads, missing = cols.stop - cols.start, self._keys.shape[1], -n_rows % _ROWS_STEP
        shape_HED = self.n_heads, n_rows + missing, spec.head_size
        q_HED = torch.empty(shape_HED, dtype=torch.float32, device=self.device)
        factor = spec.scale if spec.soft_cap is None else spec.scale / spec.soft_cap
        torch.mul(self._heads.q_BHND[0, :, rows].float(), factor, out=q_HED[:, :n_rows])
        added_HE = shift_HN if spec.soft_cap is None else torch.zeros_like(shift_HN)
        if missing:
            q_HED[:, n_rows:], added_HE = 0.0, functional.pad(added_HE, (0, missing))
        first = cols.start - self._cols.start
        s_MKE = grouped_product(
            self._keys[first : first + n_cols + -n_cols % _KEYS_STEP],
            q_HED.unflatten(0, (n_key_heads, -1)).flatten(1, 2),
            added_HE.unflatten(0, (n_key_heads, -1)).flatten(1, 2),
        )
        s_MHN = s_MKE[:n_cols].unflatten(2, (-1, n_rows + missing)).flatten(1, 2)[..., :n_rows]
        if spec.soft_cap is not None:
            torch.add(shift_HN, s_MHN.tanh_(), alpha=spec.soft_cap, out=s_MHN)
        if self._heads.is_biased:
            s_MHN += bias_block(self._heads, rows, [range(cols.start, cols.stop)], keys_first=True)[0].transpose(0, 1)
        self._hide(s_MHN, rows, cols)
        return s_MHN

    @cached_property
    def _keys(self) -> torch.Tensor:
        """The keys [M, K, D], with as many zeros behind them as a block may reach over."""
        k_MKD = self._heads.k_BKMD[0, :, self._cols].transpose(0, 1)
        shape_MKD = len(k_MKD) + _KEYS_STEP, *k_MKD.shape[1:]
        keys_MKD = torch.empty(shape_MKD, dtype=torch.float32, device=self.device)
        keys_MKD[: len(k_MKD)], keys_MKD[len(k_MKD) :] = k_MKD, 0.0
        return keys_MKD

    def _hide(self, e_MHN: torch.Tensor, rows: slice, cols: slice) -> None:
        """Make -inf of what is masked, in its place."""
        if self._heads.key_mask_BM is not None:
            masked_MN = ~visible_block(self._heads, rows, [range(cols.start, cols.stop)])[0, 0].t()
            e_MHN.masked_fill_(masked_MN[:, None], float("-inf"))
            return
        mask, queries = self._heads.spec.mask, self._heads.positions(rows)
        seen = masks.seen_by_all(mask, queries, range(cols.start, cols.stop))
        n_keys = max(_HIDDEN_KEYS, len(queries))
        for first, stop in ((cols.start, seen.start), (seen.stop, cols.stop)):
            for key in range(first, stop, n_keys):
                keys = range(key, min(key + n_keys, stop))
                # Where only distances count, all blocks that lie so to each other are hidden alike.
                origin = 0 if mask.n_prefix or mask.n_global else min(queries.start, keys.start)
                kept_M1N, infinite_M1N = _hiding_bits(
                    mask, _moved(queries, -origin), _moved(keys, -origin), self.device
                )
                bits_MHN = e_MHN[key - cols.start : keys.stop - cols.start].view(torch.int32)
                bits_MHN.bitwise_and_(kept_M1N).bitwise_or_(infinite_M1N)


def head_groups(heads: HeadInputs) -> Iterator[tuple[slice, HeadInputs]]:
    """The heads to compute together: some key heads with all that share them, or some of those that share one."""
    n_heads, n_key_heads = heads.q_BHND.shape[1], heads.k_BKMD.shape[1]
    if heads.replaced:
        # A head that an edit changed has a mask of its own.
        yield from ((slice(head, head + 1), heads.head(head)) for head in range(n_heads))
        return
    n_sharing = n_heads // n_key_heads
    n_most = min(_GROUP, n_sharing * max(1, _GROUP_BYTES // (4 * heads.n_keys * heads.spec.head_size)))
    unit, step = (n_heads, n_most // n_sharing * n_sharing) if n_sharing <= n_most else (n_sharing, n_most)
    for first in range(0, n_heads, unit):
        for start in range(first, first + unit, step):
            together = slice(start, min(start + step, first + unit))
            yield together, heads.of_heads(together)


def to_subtract(logsumexp: torch.Tensor) -> torch.Tensor:
    """Log-sum-exps as they are subtracted: +inf for a row that sees no key, whose weights are 0; NaN where scores
    overflow."""
    overflows, sees_none = logsumexp.isposinf(), logsumexp.isneginf()
    return logsumexp.masked_fill(overflows, float("nan")).masked_fill(sees_none, float("inf"))


@lru_cache(maxsize=16)
def _hiding_bits(
    mask: MaskSpec, queries: range, keys: range, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """The bits [M, 1, N] of a float32 to keep, and then to set, so that it is -inf where a query position of a range
    may not see a key of another: masked_fill_ in a quarter of its time on a CPU, and right for a NaN too."""
    query_N, key_M = (torch.arange(at.start, at.stop, at.step, device=device) for at in (queries, keys))
    kept_M1N = -masks.visible(mask, query_N, key_M).t()[:, None].int().contiguous()
    infinity = torch.tensor(float("-inf"), dtype=torch.float32, device=device).view(torch.int32)
    return kept_M1N, ~kept_M1N & infinity


def _moved(positions: range, by: int) -> range:
    return range(positions.start + by, positions.stop + by, positions.step)
