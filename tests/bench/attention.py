"""What capture and exact attention cost: forward passes, tiles, thumbnails, whole views, local windows."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from unittest.mock import patch

import numpy as np
import torch

from core_model.cancel import CancelToken
from core_model.config import AttentionSpec, MaskSpec, multi_head
from core_model.errors import Cancelled
from core_model.nn import product
from core_model.nn.attend import attend
from core_model.nn.scores import HeadInputs
from core_model.trace import Inputs, Trace, run_trace
from core_model.trace.scores import HeadScores
from core_model.trace.views import pool, row_peaks
from tests.bench import models
from tests.bench.kinds import every_kind
from tests.bench.measure import Line, in_turn, matrix_product_rate, median_seconds, peak_growth

_SITE = "decoder.self"


def lines(device: torch.device) -> Iterator[list[Line]]:
    """The lines of the table, a group at a time."""
    with torch.inference_mode():
        yield _capture(device)
        yield _against_reference(device)
        yield _against_weights(device)
        yield _against_transformer_lens(device)
        yield _one_head(device)
        yield _thumbnails(device)
        yield every_kind(device)
        yield _whole_views(device)
        yield _local_window(device)


def _ids(n: int) -> np.ndarray:
    return np.random.default_rng(n).integers(0, models.VOCAB_SIZE, n)


def _batch(n: int, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(_ids(n))[None].to(device)


def _capture(device: torch.device) -> list[Line]:
    found = []
    for name, model in (("GPT-2", models.gpt2(device)), ("Llama", models.llama(device))):
        for n in (512, 1024, 2048):
            inputs, ids_BN = Inputs(ids=_ids(n)), _batch(n, device)
            pair = in_turn(lambda m=model, i=inputs: run_trace(m, i), lambda m=model, i=ids_BN: m(i))
            found.append(
                _ratio(f"{name} forward with capture, n={n}", "ours without", pair.ratio, pair.first, "<= 1.03x")
            )
    return found + _by_either_library(device)


def _by_either_library(device: torch.device) -> list[Line]:
    """The same forward pass with the products that are chosen, and with those that PyTorch would choose."""
    model, inputs = models.gpt2(device), Inputs(ids=_ids(1024))

    def by_pytorch() -> Trace:
        with patch.object(product, "onednn_is_faster", lambda: False):
            return run_trace(model, inputs)

    pair = in_turn(lambda: run_trace(model, inputs), by_pytorch)
    reference = "the products PyTorch chooses"
    return [_ratio("GPT-2 forward with capture, n=1024", reference, pair.ratio, pair.first, "<= 1.03x")]


def _against_reference(device: torch.device) -> list[Line]:
    found = []
    kinds = (("GPT-2", models.gpt2, models.reference_gpt2), ("Llama", models.llama, models.reference_llama))
    for name, ours, theirs in kinds:
        model, reference = ours(device), theirs("sdpa", device)
        for n in (512, 1024, 2048, 4096):
            inputs, ids_BN = Inputs(ids=_ids(n)), _batch(n, device)
            pair = in_turn(
                lambda m=model, i=inputs: run_trace(m, i), lambda m=reference, i=ids_BN: m(i, use_cache=False)
            )
            found.append(_ratio(f"{name} capture, n={n}", "transformers sdpa", pair.ratio, pair.first, "<= 1.05x"))
    return found


def _against_weights(device: torch.device) -> list[Line]:
    found = []
    model, reference = models.llama(device), models.reference_llama("eager", device)
    for n, faster, smaller in ((1024, 1.4, 7), (2048, 2.4, 20)):
        inputs, ids_BN = Inputs(ids=_ids(n)), _batch(n, device)
        pair = in_turn(
            lambda i=inputs: run_trace(model, i), lambda i=ids_BN: reference(i, use_cache=False, output_attentions=True)
        )
        held = reference(ids_BN, use_cache=False, output_attentions=True).attentions
        theirs = sum(a.numel() * a.element_size() for a in held)
        del held
        found += _faster_and_smaller(
            f"grouped capture, n={n}",
            "transformers eager",
            pair.ratio,
            run_trace(model, inputs),
            theirs,
            faster,
            smaller,
        )
        gc.collect()
    return found


def _against_transformer_lens(device: torch.device) -> list[Line]:
    if not _has_hooked_transformer():
        found = "not installed (a version below 4)"
        return [Line(work="capture, n=1024", reference="TransformerLens", found=found, must_be="1.3x faster")]
    from transformer_lens import HookedTransformer, HookedTransformerConfig  # pyright: ignore[reportMissingImports]

    config = HookedTransformerConfig(
        n_layers=models.N_LAYERS,
        d_model=models.D_MODEL,
        n_ctx=models.MAX_LENGTH,
        d_head=models.HEAD_SIZE,
        n_heads=models.N_HEADS,
        d_vocab=models.VOCAB_SIZE,
        act_fn="gelu_new",
        device=str(device),
    )
    lens, model = HookedTransformer(config), models.gpt2(device)
    inputs, ids_BN = Inputs(ids=_ids(1024)), _batch(1024, device)

    def patterns() -> dict[str, torch.Tensor]:
        return lens.run_with_cache(ids_BN, names_filter=lambda name: name.endswith("hook_pattern"))[1].cache_dict

    pair = in_turn(lambda: run_trace(model, inputs), patterns)
    theirs = sum(t.numel() * t.element_size() for t in patterns().values())
    trace = run_trace(model, inputs)
    return _faster_and_smaller("capture, n=1024", "TransformerLens patterns", pair.ratio, trace, theirs, 1.3, 7)


def _has_hooked_transformer() -> bool:
    """Whether TransformerLens is here with the class that caches patterns, which version 4 took away."""
    try:
        return int(version("transformer-lens").partition(".")[0]) < 4
    except PackageNotFoundError:
        return False


def _one_head(device: torch.device) -> list[Line]:
    trace = run_trace(models.gpt2(device), Inputs(ids=_ids(1024)))
    whole = slice(0, 1024)
    trace.head(_SITE, 3, 5).prepare()
    spent = median_seconds(lambda: trace.head(_SITE, 3, 5).weights(whole, whole))
    found = [Line(work="one head, exact, n=1024", reference="", found=f"{spent * 1e3:.2f} ms", must_be="< 3 ms")]
    for n in (8192, 32768, 131072):
        head = _random_head(n, device, causal=True)
        head.prepare()
        rows, cols = slice(n - 1536, n - 512), slice(n - 3000, n - 1976)
        head.weights(rows, cols)
        spent = median_seconds(lambda h=head, r=rows, c=cols: h.weights(r, c))
        found.append(
            Line(work=f"exact tile 1024 x 1024, n={n}", reference="", found=f"{spent * 1e3:.2f} ms", must_be="< 4 ms")
        )
    return found


def _thumbnails(device: torch.device) -> list[Line]:
    found = []
    model, reference = models.gpt2(device), models.reference_gpt2("sdpa", device)
    for n, faster in ((1024, 4), (2048, 6)):
        inputs, ids_BN = Inputs(ids=_ids(n)), _batch(n, device)
        trace = run_trace(model, inputs)

        def draw(trace: Trace = trace) -> np.ndarray:
            return trace.thumbnails(_SITE, 64)

        plain = in_turn(draw, lambda t=trace, n=n: _plain_thumbnails(t, n))
        theirs = in_turn(draw, lambda i=ids_BN: reference(i, use_cache=False))
        ours = in_turn(draw, lambda i=inputs: run_trace(model, i))
        work = f"144 thumbnails, n={n}, {plain.first * 1e3:.0f} ms"
        found += [
            Line(
                work=work,
                reference="softmax + max_pool2d",
                found=f"{1 / plain.ratio:.2f}x faster",
                must_be=f">= {faster}x",
            ),
            Line(work=work, reference="transformers sdpa", found=f"{theirs.ratio:.3f}x of it", must_be="<= 0.1x"),
            Line(work=work, reference="our forward", found=f"{ours.ratio:.3f}x of it", must_be="<= 0.1x"),
        ]
    return found


def _plain_thumbnails(trace: Trace, n: int) -> torch.Tensor:
    """All heads of each layer at once: product, mask, softmax, max_pool2d."""
    pictures = []
    masked = torch.ones(n, n, dtype=torch.bool).triu(1)
    for layer in range(models.N_LAYERS):
        heads = trace.heads(_SITE, layer)
        s_BHNM = heads.q_BHND @ heads.k_BKMD.transpose(-1, -2) * heads.spec.scale
        weights = s_BHNM.masked_fill_(masked.to(s_BHNM.device), float("-inf")).softmax(-1)
        pictures.append(torch.nn.functional.max_pool2d(weights[0], n // 64))
    return torch.stack(pictures)


def _whole_views(device: torch.device) -> list[Line]:
    found = []
    rate = matrix_product_rate(device)
    for n, share in ((8192, "50 %"), (32768, "65 %"), (131072, "works")):
        head = _random_head(n, device, causal=False)
        whole = slice(0, n)
        grown = peak_growth(lambda h=head, w=whole: pool(h, w, w, (1024, 1024)))
        rounds = 7 if n < 100_000 else 1
        spent = median_seconds(lambda h=head, w=whole: pool(h, w, w, (1024, 1024)), rounds)
        reached = 2 * n * n * models.HEAD_SIZE / spent / rate
        found.append(
            Line(
                work=f"whole view, full attention, n={n}, {spent:.2f} s",
                reference=f"its fastest matrix product, {rate / 1e9:.0f} GFLOP/s",
                found=f"{reached:.0%}",
                must_be=f">= {share}" if n < 100_000 else share,
            )
        )
        if grown is not None:
            found.append(
                Line(
                    work=f"whole view with its row normalisers, n={n}",
                    reference="queries and keys",
                    found=f"+{grown / 1e6:.0f} MB",
                    must_be="< 100 MB" if n < 100_000 else "linear",
                )
            )
        found.append(_cancel_delay(head, n))
        found += _first_coarse_pictures(n, device)
    return found


def _first_coarse_pictures(n: int, device: torch.device) -> Iterator[Line]:
    """The sample drawn while one waits, with the peaks of its rows, for a head just asked for: one whose normalisers
    the forward pass made, and one of capped scores, which has none yet."""
    for kind, soft_cap in (("full attention", None), ("soft-capped", 30.0)):
        heads = _random_head(n, device, causal=False).inputs
        made = torch.zeros(1, 1, n, device=device) if soft_cap is None else None
        heads = replace(heads, spec=replace(heads.spec, soft_cap=soft_cap), logsumexp_BHN=made)

        def draw(heads: HeadInputs = heads) -> None:
            head, whole = HeadScores(heads, 0), slice(0, n)
            picture = pool(head, whole, whole, (1024, 1024), "sample")
            row_peaks(head, whole, len(picture.weights), "sample")

        spent = median_seconds(draw)
        work = f"whole view, first coarse picture, {kind}, n={n}"
        yield Line(work=work, reference="", found=f"{spent * 1e3:.0f} ms", must_be="< 100 ms")


def _cancel_delay(head: HeadScores, n: int) -> Line:
    """Time from cancel to the worker being free again."""
    token = CancelToken()
    ended: list[float] = []

    def work() -> None:
        with contextlib.suppress(Cancelled):
            pool(head, slice(0, n), slice(0, n), (1024, 1024), cancel=token)
        ended.append(time.perf_counter())

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.03)
    asked = time.perf_counter()
    token.cancel()
    thread.join()
    return Line(
        work=f"cancel of a whole view, n={n}",
        reference="",
        found=f"{max(0.0, ended[0] - asked) * 1e3:.1f} ms",
        must_be="< 50 ms",
    )


def _local_window(device: torch.device) -> list[Line]:
    local = multi_head(models.D_MODEL, models.N_HEADS, mask=MaskSpec(causal=True, window=256))
    full = multi_head(models.D_MODEL, models.N_HEADS, mask=MaskSpec(causal=True))
    found = []
    for n in (1024, 4096, 16384):
        pair = in_turn(_attention(local, n, device), _attention(full, n, device))
        work = f"local attention, 12 heads, n={n}, {pair.first * 1e3:.0f} ms"
        reference = f"full attention, {pair.second * 1e3:.0f} ms"
        found.append(Line(work=work, reference=reference, found=f"{pair.ratio:.2f}x", must_be=""))
    for kind, spec, must_be in (("local", local, "<= 4.4x"), ("full", full, "< 1x")):
        pair = in_turn(_attention(local, 65536, device), _attention(spec, 16384, device))
        found.append(_ratio("local attention, 12 heads, n=65536", f"{kind}, n=16384", pair.ratio, pair.first, must_be))
    return found


def _attention(spec: AttentionSpec, n: int, device: torch.device) -> Callable[[], object]:
    q, k, v = torch.randn(3, 1, models.N_HEADS, n, models.HEAD_SIZE, device=device)
    heads = HeadInputs(spec=spec, q_BHND=q, k_BKMD=k)
    return lambda: attend(heads, v)


def _random_head(n: int, device: torch.device, *, causal: bool) -> HeadScores:
    q, k = torch.randn(2, 1, 1, n, models.HEAD_SIZE, device=device)
    spec = multi_head(models.HEAD_SIZE, 1, mask=MaskSpec(causal=causal))
    return HeadScores(HeadInputs(spec=spec, q_BHND=q, k_BKMD=k), 0)


def _ratio(work: str, reference: str, ratio: float, spent: float, must_be: str) -> Line:
    return Line(work=f"{work}, {spent:.2f} s", reference=reference, found=f"{ratio:.3f}x", must_be=must_be)


def _faster_and_smaller(
    work: str, reference: str, ratio: float, trace: Trace, their_bytes: int, faster: float, smaller: int
) -> list[Line]:
    ours = trace.n_bytes
    return [
        Line(work=work, reference=reference, found=f"{1 / ratio:.2f}x faster", must_be=f">= {faster}x"),
        Line(
            work=f"{work}, {ours / 1e6:.0f} MB held",
            reference=f"{reference}, {their_bytes / 1e6:.0f} MB",
            found=f"1/{their_bytes / ours:.1f}",
            must_be=f"<= 1/{smaller}",
        ),
    ]
