"""Text from a model, token by token, with the keys and values of earlier tokens kept.

What the steps saw can be stitched into one trace whose attention is the lower-triangular matrix of the whole text,
the same numbers a single pass over it gives. Runs off the UI thread.

Where rotary frequencies depend on the length (dynamic and longrope scaling, beyond the trained length), keys that were
kept are keys of another length. transformers computes all anew when longrope goes over to its long factors (Phi-3),
and lets dynamic scaling mix keys of all lengths. Here all is computed anew whenever the frequencies change: once with
longrope, at every token with dynamic, which then costs a whole pass a token. The same where earlier tokens may look at
later ones (no causal mask, or a prefix that the text has not filled).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

import torch

from core_model.cancel import CancelToken
from core_model.config import RotaryPositions
from core_model.errors import ConfigError, TraceError
from core_model.nn import masks
from core_model.nn.cache import KeyValueCache
from core_model.nn.inference import looking_at
from core_model.nn.positions import turns_alike
from core_model.nn.scores import HeadInputs
from core_model.nn.transformer import Transformer
from core_model.trace.inputs import Inputs
from core_model.trace.tap import CollectingTap
from core_model.trace.tensors import checked_tensors
from core_model.trace.trace import Trace, check_memory

_TURNED_OTHERWISE = "rotary frequencies changed with the length"
_SEES_LATER = "earlier tokens look at later ones"
_ONE_PASS = (
    "what is shown is one pass over the whole text, while each token was drawn from a pass over the text before it"
)


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next token is drawn: temperature 0 is greedy; top_k, then top_p of what it left (Holtzman et al. 2020),
    narrow it."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < inf:
            raise ConfigError(f"temperature is {self.temperature}: it must be 0 (greedy) or a number above")
        if self.top_k is not None and (not isinstance(self.top_k, int) or self.top_k < 1):
            raise ConfigError(f"top_k is {self.top_k}: it must be a whole number, at least 1")
        if not isinstance(self.seed, int) or not -(1 << 63) <= self.seed < 1 << 64:
            raise ConfigError(f"seed is {self.seed}: it must be a whole number from -2**63 to 2**64 - 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}: it must be above 0 and at most 1")


@dataclass(frozen=True, kw_only=True)
class GeneratedToken:
    """One new token and the probability it was drawn with, after temperature and before top-k and top-p."""

    id: int
    probability: float


class Generation(Iterator[GeneratedToken]):
    """Tokens one after the other; iterate to draw them, then ask for the trace of everything.

    The prompt is `inputs` (for an encoder-decoder: the source, and decoder_ids to start from). Stops after n_tokens,
    at the model's end token, or at its last position. Raises TraceError where the model writes no text, its logits are
    no numbers or the whole does not fit into memory, Cancelled when asked to stop, within a step too; whoever goes on
    after that gets the tokens that were still to come.
    """

    def __init__(
        self,
        model: Transformer,
        inputs: Inputs,
        *,
        n_tokens: int,
        sampling: Sampling = Sampling(),
        cancel: CancelToken | None = None,
    ) -> None:
        if model.config.decoder is None:
            raise TraceError("this model has no decoder: it cannot generate text")
        if model.head is None or model.head.spec.task != "language_model":
            raise TraceError("this model has no language-model head: it cannot generate text")
        self._model, self._sampling, self._cancel = model, sampling, cancel
        given = checked_tensors(model, inputs)
        if model.encoder is None and given.type_ids_BN is not None and given.type_ids_BN.any():
            raise TraceError("type_ids say nothing of tokens that are still to be drawn: leave them out to generate")
        self._first_BN, self._type_ids_BN = given.first, given.type_ids_BN
        prompt_BN = given.first if given.second is None else given.second
        if prompt_BN.is_floating_point():
            raise TraceError("the prompt is given as embeddings: give ids to generate from")
        *before, n_prompt = given.n_tokens(model.config)
        check_memory(model, (*before, n_prompt + n_tokens))
        self._ids: list[int] = prompt_BN[0].tolist()
        self._n_prompt, self._n_tokens = n_prompt, n_tokens
        self._generator = torch.Generator().manual_seed(sampling.seed)
        self._outdated_by: set[str] = set()
        self._memory_BMC: torch.Tensor | None = None
        self._heads: dict[tuple[str, int], HeadInputs] = {}
        self._begin_text()

    def _begin_text(self) -> None:
        """No token is fed yet; the source, where there is one, may be."""
        self._heads = {key: heads for key, heads in self._heads.items() if not key[0].startswith("decoder.")}
        self._hidden: list[torch.Tensor] = []
        self._logits: list[torch.Tensor] = []
        self._cache, self._n_fed = KeyValueCache(), 0

    @property
    def ids(self) -> tuple[int, ...]:
        """The prompt of the decoder and all tokens drawn so far."""
        return tuple(self._ids)

    def __next__(self) -> GeneratedToken:
        if self._is_over():
            raise StopIteration
        if self._cancel is not None:
            self._cancel.check()
        with looking_at(self._model):
            if self._model.encoder is not None and self._memory_BMC is None:
                self._read_source()
            if self._n_fed < len(self._ids):
                self._feed()
            token = draw(self._logits[-1][-1], self._sampling, self._generator)
        self._ids.append(token.id)
        return token

    def _is_over(self) -> bool:
        drawn, limit = self._ids[self._n_prompt :], self._model.config.output_stack.max_length
        if not drawn:
            return self._n_tokens <= 0
        is_at_limit = limit is not None and len(self._ids) > limit
        return is_at_limit or len(drawn) >= self._n_tokens or drawn[-1] == self._model.config.special.end

    def trace(self) -> Trace:
        """Attention of all tokens that were fed, prompt and drawn: queries of every step over all keys.

        Where later tokens changed how earlier ones are computed, all are those of the whole text, which its notes say:
        a token was then drawn from other logits than those of the trace, those of the text before it.
        """
        if not self._n_fed:
            raise TraceError("nothing was generated yet: draw at least one token first")
        hidden_NC = torch.cat(self._hidden).float().cpu().numpy()
        logits_NV = torch.cat(self._logits).float().cpu().numpy()
        notes = (f"{' and '.join(sorted(self._outdated_by))}: {_ONE_PASS}",) if self._outdated_by else ()
        return Trace(self._heads, {}, hidden=hidden_NC, logits=logits_NV, notes=notes)

    def _reasons_to_begin_anew(self) -> set[str]:
        """Why the tokens fed so far would be computed otherwise in the text as long as it is now."""
        assert self._model.decoder is not None
        n_fed, n, reasons = self._n_fed, len(self._ids), set[str]()
        for attention in {layer.attention for layer in self._model.decoder.config.layers} if n_fed else ():
            if isinstance(attention.position, RotaryPositions) and not turns_alike(attention.position, n_fed, n):
                reasons.add(_TURNED_OTHERWISE)
            if masks.visible(attention.mask, torch.arange(n_fed), torch.arange(n_fed, n)).any():
                reasons.add(_SEES_LATER)
        return reasons

    def _read_source(self) -> None:
        """The encoder's output, once."""
        tap = CollectingTap(cancel=self._cancel)
        self._memory_BMC = self._model.encode(self._first_BN, self._type_ids_BN, tap=tap)
        self._heads |= tap.heads

    def _feed(self) -> None:
        """Run the tokens that are new. A step that is stopped leaves nothing behind."""
        outdated_by = self._reasons_to_begin_anew()
        n_fed, cache = (0, KeyValueCache()) if outdated_by else (self._n_fed, self._cache.copy())
        tap = CollectingTap(cancel=self._cancel)
        ids_BN = torch.tensor([self._ids[n_fed:]], device=next(self._model.parameters()).device)
        hidden_BNC = self._model.decode(ids_BN, self._memory_BMC, cache=cache, tap=tap)
        logits_BNV = self._model.logits(hidden_BNC, tap=tap)
        if outdated_by:
            self._outdated_by |= outdated_by
            self._begin_text()
        self._cache, self._n_fed = cache, len(self._ids)
        self._hidden.append(hidden_BNC[0])
        self._logits.append(logits_BNV[0])
        for key, heads in tap.heads.items():
            self._heads[key] = _stitched(self._heads[key], heads) if key in self._heads else heads


def _stitched(before: HeadInputs, heads: HeadInputs) -> HeadInputs:
    """The queries of all steps; the last step's keys are the keys of all."""
    logsumexp_BHN = None
    if before.logsumexp_BHN is not None and heads.logsumexp_BHN is not None:
        logsumexp_BHN = torch.cat((before.logsumexp_BHN, heads.logsumexp_BHN), dim=2)
    q_BHND = torch.cat((before.q_BHND, heads.q_BHND), dim=2)
    return replace(heads, query_start=0, q_BHND=q_BHND, logsumexp_BHN=logsumexp_BHN)


def draw(logits_V: torch.Tensor, sampling: Sampling, generator: torch.Generator) -> GeneratedToken:
    """One token from logits [V]. Raises TraceError where they are no numbers."""
    logits_V = logits_V.float().cpu()
    best = int(logits_V.argmax())
    if not logits_V[best].isfinite():
        raise TraceError(
            f"the logits of the next token hold {logits_V[best].item()}: no token can be drawn from them; "
            "look for weights that are no numbers"
        )
    if sampling.temperature == 0:
        return GeneratedToken(id=best, probability=float(logits_V.softmax(-1)[best]))
    probability_V = ((logits_V - logits_V[best]) / sampling.temperature).softmax(-1)
    order_V = probability_V.argsort(descending=True, stable=True)
    kept_V = probability_V[order_V]
    if sampling.top_k is not None:
        kept_V[sampling.top_k :] = 0
    if sampling.top_p is not None:
        mass_before_V = kept_V.cumsum(0) - kept_V
        kept_V[mass_before_V >= sampling.top_p * kept_V.sum()] = 0
    token = int(order_V[torch.multinomial(kept_V, 1, generator=generator)])
    return GeneratedToken(id=token, probability=float(probability_V[token]))
