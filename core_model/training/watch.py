"""Measurements of a model in training that leave no trace in it: held-out accuracy, attention on the watched example.

Shape letters: B batch, N input positions, M decoder positions, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from core_model.nn.inference import looking_at
from core_model.nn.tap import Tap
from core_model.nn.transformer import Transformer
from core_model.results import read_only
from core_model.tokenize import Tokenizer
from core_model.trace import Inputs, run_trace
from core_model.training.data import IGNORED, Batch, Example
from core_model.training.events import ProbeAttention, ProbeSite
from core_model.training.precision import MixedPrecision, NotFiniteError, first_not_finite


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceBatch:
    """A Batch as tensors on the device that trains."""

    ids_BN: torch.Tensor
    targets: torch.Tensor
    decoder_ids_BM: torch.Tensor | None
    key_mask_BN: torch.Tensor | None

    def logits(self, model: Transformer, tap: Tap | None = None) -> torch.Tensor:
        """What the model predicts [B, N, V], or [B, M, V] where a decoder reads an encoder."""
        return model(self.ids_BN, self.decoder_ids_BM, key_mask_BN=self.key_mask_BN, tap=tap)


def to_device(batch: Batch, device: torch.device) -> DeviceBatch:
    """The batch on that device."""

    def moved(array: np.ndarray | None) -> torch.Tensor | None:
        return None if array is None else torch.from_numpy(array).to(device)

    ids_BN, targets = moved(batch.ids_BN), moved(batch.targets)
    assert ids_BN is not None and targets is not None
    return DeviceBatch(
        ids_BN=ids_BN,
        targets=targets,
        decoder_ids_BM=moved(batch.decoder_ids_BM),
        key_mask_BN=moved(batch.key_mask_BN),
    )


def accuracy(model: Transformer, batch: DeviceBatch, precision: MixedPrecision) -> float | None:
    """The share of targets that the model, in eval mode, finds most probable, each given the right ones before it.

    None where a largest logit is not finite: nothing is most probable among such.
    """
    with looking_at(model), precision.autocast():
        largest, predicted = batch.logits(model).max(-1)
    asked = batch.targets != IGNORED
    if not largest[asked].isfinite().all():
        return None
    return (predicted == batch.targets)[asked].float().mean().item()


def probe_attention(model: Transformer, example: Example, tokenizer: Tokenizer, step: int) -> ProbeAttention:
    """All heads' attention on one example: the numbers of run_trace, the same as a saved run shows."""
    trace = run_trace(model, Inputs(ids=example.ids, decoder_ids=example.decoder_ids))
    input_texts = tuple(tokenizer.token_text(id) for id in example.ids)
    decoder_texts = tuple(tokenizer.token_text(id) for id in example.decoder_ids or example.ids)
    sites: dict[str, ProbeSite] = {}
    for site in trace.sites:
        _, n_heads, n_queries, n_keys = trace.shape(site)
        layers = trace.layers(site)
        masked_NM = trace.head(site, layers[0], 0).masked(slice(0, n_queries), slice(0, n_keys))
        weights = [[trace.attention(site, layer, head) for head in range(n_heads)] for layer in layers]
        sites[site] = ProbeSite(
            weights=read_only(np.array(weights, dtype=np.float32)),
            masked=read_only(masked_NM.cpu().numpy()),
            query_texts=input_texts if site == "encoder.self" else decoder_texts,
            key_texts=decoder_texts if site == "decoder.self" else input_texts,
        )
    return ProbeAttention(step=step, sites=sites)


class _FirstNotFinite(Tap):
    """Remembers the first activation of a forward pass that is not finite."""

    found: NotFiniteError | None = None

    def activation(self, site: str, x: torch.Tensor) -> torch.Tensor:
        self.found = self.found or first_not_finite([(site, x)])
        return x


def blame(model: Transformer, batch: DeviceBatch, precision: MixedPrecision) -> NotFiniteError:
    """Where a loss that is not finite comes from: the first weight, else the first activation, else the loss itself."""
    broken_weight = first_not_finite(model.named_parameters())
    if broken_weight is not None:
        return broken_weight
    tap = _FirstNotFinite()
    with torch.no_grad(), precision.autocast():
        batch.logits(model, tap)
    return tap.found or NotFiniteError("loss", "not finite")
