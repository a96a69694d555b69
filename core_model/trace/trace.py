"""One forward pass, remembered so that any head's attention can be computed from it, exactly, at any length.

Shape letters: N queries, M keys, C model width, V outputs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import torch

from core_model import counts
from core_model.cancel import CancelToken, Progress
from core_model.device import available_memory, keep_freed_memory
from core_model.errors import TraceError
from core_model.nn.inference import looking_at
from core_model.nn.scores import HeadInputs
from core_model.nn.transformer import Transformer
from core_model.results import BoolArray, CellFacts, FloatArray, HeatmapView, Reduce, rank_among, read_only
from core_model.trace.edits import Edit
from core_model.trace.inputs import Inputs
from core_model.trace.scores import HeadScores, prepare_together, row_entropy
from core_model.trace.tap import CollectingTap
from core_model.trace.tensors import GivenTensors, checked_tensors
from core_model.trace.views import checked_range, pool, row_peaks, thumbnails, whole

_KEPT_BYTES = 1 << 28
"""What the row normalisers of the heads last asked for may take; the oldest go first."""


def run_trace(
    model: Transformer,
    inputs: Inputs,
    *,
    keep: str | Sequence[str] = (),
    edits: Sequence[Edit] = (),
    cancel: CancelToken | None = None,
    progress: Progress | None = None,
) -> Trace:
    """Run a model on one example in eval mode, off the UI thread. Memory is linear in length.

    `keep` names activations to remember, with shell wildcards (`decoder.*.residual_after`). Raises TraceError when
    the inputs, the edits or `keep` do not fit the model or the trace does not fit into memory, Cancelled when asked to
    stop.
    """
    keep_freed_memory()
    keep = (keep,) if isinstance(keep, str) else keep
    given = checked_tensors(model, inputs)
    check_memory(model, given.n_tokens(model.config), keep)
    by_site = model.config.attention_layers().items()
    n_attentions = sum(len(layers) for site, layers in by_site if site.split(".")[0] in given.by_stack)
    tap = CollectingTap(keep=keep, edits=edits, cancel=cancel, progress=progress, n_attentions=n_attentions)
    with looking_at(model):
        hidden = _hidden(model, given, tap)
        hidden_BNC = next(iter(hidden.values()))
        vectors = model.vectors(hidden, given.by_stack, tap=tap) if model.vectors is not None else {}
        logits_BNV = model.similarity(vectors, tap=tap) if model.head is None else model.logits(hidden_BNC, tap=tap)
    tap.check_all_used()
    logits = None if logits_BNV is None else _array(logits_BNV[0])
    notes = (*inputs.notes, *given.notes(model.config))
    return Trace(
        tap.heads,
        tap.activations,
        hidden=_array(hidden_BNC[0]),
        logits=logits,
        vectors={name: _array(vector_BE[0]) for name, vector_BE in vectors.items()},
        notes=notes,
    )


class Trace:
    """Queries, keys and row normalisers of every attention, and the outputs. Lives on the thread that made it.

    `hidden` [N, C] are those of the output stack, of two towers the first that was given something. `logits` are what
    the head says of them, None without a head: [N, V], or [V] of a head that pools. Of two towers that were both given
    something, and are compared, they are one number [1]: how alike text and image are. `vectors` [E] are those of the
    towers, by name, before they are compared.
    `notes` say what was done so that the model can read what was given: the inputs' own, and interpolated positions.
    """

    def __init__(
        self,
        heads: Mapping[tuple[str, int], HeadInputs],
        activations: Mapping[str, torch.Tensor],
        *,
        hidden: FloatArray,
        logits: FloatArray | None,
        vectors: Mapping[str, FloatArray] = MappingProxyType({}),
        notes: tuple[str, ...] = (),
    ) -> None:
        self.hidden, self.logits, self.vectors, self.notes = hidden, logits, vectors, notes
        self._heads, self._activations = dict(heads), dict(activations)
        self._scores: OrderedDict[tuple[str, int, int], HeadScores] = OrderedDict()

    @property
    def sites(self) -> tuple[str, ...]:
        """The attention sites there are, in the order they run."""
        return tuple(dict.fromkeys(site for site, _ in self._heads))

    def not_numbers(self, *, cancel: CancelToken | None = None) -> dict[str, tuple[int, ...]]:
        """The layers of each site whose attention holds NaN: weights that are no numbers, or scores that overflow."""
        found = {site: tuple(i for i in self.layers(site) if self._holds_nan(site, i, cancel)) for site in self.sites}
        return {site: layers for site, layers in found.items() if layers}

    @property
    def n_bytes(self) -> int:
        """Bytes of everything this trace keeps alive, each storage counted once."""
        kept = list(self._activations.values())
        for heads in self._heads.values():
            kept += heads.tensors
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in kept}
        outputs = [self.hidden, *self.vectors.values(), *(() if self.logits is None else (self.logits,))]
        return sum(storages.values()) + sum(array.nbytes for array in outputs)

    def layers(self, site: str) -> tuple[int, ...]:
        """The numbers of the layers that have this attention: of cross-attention perhaps not all."""
        layers = tuple(layer for known, layer in self._heads if known == site)
        if not layers:
            raise TraceError(f"site is {site!r}: this model has {', '.join(self.sites)}")
        return layers

    def shape(self, site: str) -> tuple[int, int, int, int]:
        """(layers, heads, queries, keys) of a site."""
        layers = self.layers(site)
        heads = self._heads[site, layers[0]]
        return len(layers), heads.q_BHND.shape[1], heads.n_queries, heads.n_keys

    def attention(
        self,
        site: str,
        layer: int,
        head: int,
        *,
        cancel: CancelToken | None = None,
        progress: Progress | None = None,
    ) -> FloatArray:
        """The exact matrix [N, M] of one head in float32: rows are queries, columns keys, masked cells 0."""
        scores = self.head(site, layer, head)
        rows, cols = slice(0, scores.n_queries), slice(0, scores.n_keys)
        return _array(scores.weights(rows, cols, cancel, progress))

    def row(self, site: str, layer: int, head: int, query: int) -> FloatArray:
        """The exact weights [M] that one query gives."""
        scores = self.head(site, layer, head)
        rows = checked_range("rows", (query, query + 1), scores.n_queries)
        return _array(scores.weights(rows, slice(0, scores.n_keys))[0])

    def cell(self, site: str, layer: int, head: int, query: int, key: int) -> CellFacts:
        """One cell's weight, score, rank in its row, and its row's entropy in nat."""
        scores = self.head(site, layer, head)
        rows = checked_range("rows", (query, query + 1), scores.n_queries)
        cols = checked_range("cols", (key, key + 1), scores.n_keys)
        weights_M = scores.weights(rows, slice(0, scores.n_keys))[0]
        masked = bool(scores.masked(rows, cols)[0, 0])
        in_float64_M = weights_M.cpu().double()
        total = in_float64_M.sum()
        has_score = not masked and head not in self._heads[site, layer].replaced
        return CellFacts(
            query=query,
            key=key,
            weight=float(weights_M[key]),
            score=float(scores.scores(rows, cols)[0, 0]) if has_score else None,
            rank=rank_among(_array(weights_M), float(weights_M[key])),
            masked=masked,
            row_entropy=float(row_entropy(total, torch.special.entr(in_float64_M).sum())) if total != 0 else None,
        )

    def view(
        self,
        site: str,
        layer: int,
        head: int,
        rows: tuple[int, int] | None = None,
        cols: tuple[int, int] | None = None,
        size: tuple[int, int] = (1024, 1024),
        reduce: Reduce = "max",
        *,
        cancel: CancelToken | None = None,
        progress: Progress | None = None,
    ) -> HeatmapView:
        """The matrix or part of it in at most size[0] x size[1] pixels: exact where a pixel is a cell, else pooled."""
        scores = self.head(site, layer, head)
        row_range = checked_range("rows", rows, scores.n_queries)
        col_range = checked_range("cols", cols, scores.n_keys)
        picture = pool(scores, row_range, col_range, size, reduce, cancel=cancel, progress=progress)
        return HeatmapView(
            site=site,
            layer=layer,
            head=head,
            rows=(row_range.start, row_range.stop),
            cols=(col_range.start, col_range.stop),
            values=_array(picture.weights),
            masked=_mask_array(picture.masked),
            cells=picture.cells,
            reduce=reduce,
        )

    def row_peaks(
        self,
        site: str,
        layer: int,
        head: int,
        rows: tuple[int, int] | None,
        n: int,
        reduce: Reduce = "max",
        *,
        cancel: CancelToken | None = None,
    ) -> FloatArray:
        """The largest weight over all keys [n] of the rows under each of n pixels down, or of the sampled one."""
        scores = self.head(site, layer, head)
        row_range = checked_range("rows", rows, scores.n_queries)
        return _array(row_peaks(scores, row_range, n, reduce, cancel=cancel))

    def thumbnails(self, site: str, size: int = 64, *, cancel: CancelToken | None = None) -> FloatArray:
        """Max-pooled pictures of all heads [layers, heads, Y, X], at most `size` pixels a side; NaN where masked."""
        layers = [
            thumbnails(self._heads[site, layer], self._each_head(site, layer), size, cancel=cancel)
            for layer in self.layers(site)
        ]
        return _array(torch.stack(layers))

    @property
    def activations(self) -> tuple[str, ...]:
        """The names of the activations that were kept."""
        return tuple(self._activations)

    def activation(self, name: str) -> FloatArray:
        """An activation that `keep` asked for, without the batch axis."""
        return _array(self.activation_tensor(name)[0])

    def activation_tensor(self, name: str) -> torch.Tensor:
        """The same as a tensor [1, ...] in the model's dtype, to patch another run with."""
        if name not in self._activations:
            kept = ", ".join(sorted(self._activations)) or "nothing"
            raise TraceError(f"{name} was not kept in this trace (kept: {kept}): name it in run_trace(keep=...)")
        return self._activations[name]

    def head(self, site: str, layer: int, head: int) -> HeadScores:
        """The scores of one head, with its row normalisers kept for the next call."""
        layers = self.layers(site)
        if layer not in layers:
            raise TraceError(f"layer is {layer}: {site} has layers {_told(layers)}")
        n_heads = self._heads[site, layer].q_BHND.shape[1]
        if not 0 <= whole("head", head) < n_heads:
            raise TraceError(f"head is {head}: {site} has heads 0 to {n_heads - 1}")
        key = (site, layer, head)
        if key not in self._scores:
            self._scores[key] = HeadScores(self._heads[site, layer], head)
            while len(self._scores) > 1 and sum(kept.n_bytes for kept in self._scores.values()) > _KEPT_BYTES:
                self._scores.popitem(last=False)
        self._scores.move_to_end(key)
        return self._scores[key]

    def heads(self, site: str, layer: int) -> HeadInputs:
        """Queries and keys of all heads of one attention."""
        self.head(site, layer, 0)
        return self._heads[site, layer]

    def _holds_nan(self, site: str, layer: int, cancel: CancelToken | None) -> bool:
        """Whether any row of any head has no weights that are numbers."""
        heads = self._heads[site, layer]
        if not (heads.q_BHND.isfinite().all() and heads.k_BKMD.isfinite().all()):
            return True
        each = self._each_head(site, layer)
        prepare_together(heads, each, cancel)
        return bool(torch.stack([head.row_normalizer for head in each]).isnan().any())

    def _each_head(self, site: str, layer: int) -> list[HeadScores]:
        return [self.head(site, layer, head) for head in range(self._heads[site, layer].q_BHND.shape[1])]


def _hidden(model: Transformer, given: GivenTensors, tap: CollectingTap) -> dict[str, torch.Tensor]:
    """Hidden states [B, N, C] of the output stack, by its name; of towers, of each that is given something."""
    if model.config.has_towers:
        return model.towers(given.by_stack, tap=tap)
    return {model.config.output_name: model.hidden(given.first, given.second, given.type_ids_BN, tap=tap)}


def check_memory(model: Transformer, n_tokens: tuple[int, ...], keep: Sequence[str] = ()) -> None:
    """Raise TraceError with the numbers when a trace of that many tokens cannot fit into what memory is free."""
    parameter = next(model.parameters())
    free = available_memory(parameter.device)
    if free is None:
        return
    n, n_decoder = (*n_tokens, 0)[:2]
    size = parameter.element_size()
    needed = sum(
        (
            counts.trace_bytes(model.config, n, n_decoder, dtype_bytes=size),
            counts.activation_bytes(model.config, keep, n, n_decoder, dtype_bytes=size),
            counts.forward_bytes(model.config, n, n_decoder, dtype_bytes=size),
        )
    )
    if needed > free:
        kept = " and fewer kept activations" if keep else ""
        raise TraceError(
            f"the input has {n + n_decoder} tokens: its trace needs {needed / 1e9:.1f} GB of memory and "
            f"{free / 1e9:.1f} GB are free. Try a shorter input{kept}, or close other programs"
        )


def _told(layers: tuple[int, ...]) -> str:
    """ "0 to 11" where they follow each other, else "3, 8, 13"."""
    follow = layers == tuple(range(layers[0], layers[-1] + 1))
    return f"{layers[0]} to {layers[-1]}" if follow else ", ".join(map(str, layers))


def _array(x: torch.Tensor) -> FloatArray:
    return read_only(x.float().cpu().numpy())


def _mask_array(x: torch.Tensor) -> BoolArray:
    return read_only(x.cpu().numpy())
