"""State dicts of torch.nn's own modules against these modules: every head's attention and the output."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from core_model.checkpoint import open_checkpoint
from core_model.checkpoint.export import express, expressing_families, family_named
from core_model.errors import ConfigError, TraceError
from core_model.trace import Inputs, Trace, run_trace
from tests.core_model.checkpoint.references import ATTENTION_LIMIT, OUTPUT_LIMIT, saved_state

D_MODEL, N_HEADS, D_HIDDEN, N_SOURCE, N_TARGET = 30, 5, 37, 9, 6
OTHERWISE = {"norm_first": True, "activation": "gelu", "eps": 0.1}
ARGUMENTS = {"norm_first": True, "activation": "gelu", "layer_norm_eps": 0.1}
"""The same as `assume` and as torch.nn call it."""


def vectors(n: int, seed: int) -> torch.Tensor:
    return torch.randn(n, D_MODEL, generator=torch.Generator().manual_seed(seed))


def seeded(module: nn.Module) -> nn.Module:
    """The module with weights so large that its attention is far from flat, biases and gains included."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            spread = 0.2 if parameter.dim() < 2 else 2.0 * parameter.shape[-1] ** -0.5
            parameter.normal_(std=spread, generator=generator)
            if name.endswith("weight") and parameter.dim() == 1:
                parameter.add_(1)
    return module.eval()


def encoder(n_layers: int = 3, *, final_norm: bool = False, **arguments: Any) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(D_MODEL, N_HEADS, D_HIDDEN, batch_first=True, **arguments)
    norm = nn.LayerNorm(D_MODEL) if final_norm else None
    return nn.TransformerEncoder(layer, n_layers, norm=norm, enable_nested_tensor=False)


def transformer(**arguments: Any) -> nn.Transformer:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="enable_nested_tensor")  # the constructor offers no other way
        return nn.Transformer(D_MODEL, N_HEADS, 2, 3, D_HIDDEN, batch_first=True, **arguments)


def maps(module: nn.Module, *given: torch.Tensor, **masks: Any) -> tuple[dict[str, list[np.ndarray]], np.ndarray]:
    """What a module computes: the attention of its layers by the end of their names, and its output."""
    seen: dict[str, list[np.ndarray]] = {}

    def note(name: str) -> Any:
        def hook(attention: nn.MultiheadAttention, args: Any, kwargs: Any, _: Any) -> None:
            kwargs = {**kwargs, "need_weights": True, "average_attn_weights": False, "is_causal": False}
            weights = attention.forward(*args, **kwargs)[1]
            assert weights is not None
            seen.setdefault(name, []).append(weights[0].detach().numpy())

        return hook

    for name, child in module.named_modules():
        if isinstance(child, nn.MultiheadAttention):
            stack = "decoder" if "decoder" in name else "encoder"
            site = f"{stack}.cross" if "multihead_attn" in name else f"{stack}.self"
            child.register_forward_hook(note(site), with_kwargs=True)
    output = module(*(tensor[None] for tensor in given), **masks)
    return seen, (output[0] if isinstance(output, tuple) else output)[0].detach().numpy()


def assert_agrees(trace: Trace, seen: dict[str, list[np.ndarray]], output: np.ndarray) -> None:
    assert set(trace.sites) == set(seen)
    for site, layers in seen.items():
        assert max(float(weights.max()) for weights in layers) > 0.5, "a flat reference would agree with anything"
        for layer, heads in enumerate(layers):
            for head, want in enumerate(heads):
                np.testing.assert_allclose(trace.attention(site, layer, head), want, atol=ATTENTION_LIMIT, rtol=0)
    limit = OUTPUT_LIMIT * max(1.0, float(output.std()))
    np.testing.assert_allclose(trace.hidden, output, atol=limit, rtol=0)
    assert trace.logits is None


@pytest.mark.parametrize(
    ("arguments", "assume"),
    [
        ({}, {}),
        ({"final_norm": True, "bias": False}, {}),
        ({"final_norm": True, **ARGUMENTS, "layer_norm_eps": 1e-5}, {**OTHERWISE, "eps": 1e-5}),
        (ARGUMENTS, OTHERWISE),
    ],
    ids=["post-norm", "without-biases", "pre-norm-final-norm", "pre-norm"],
)
def test_an_encoder_agrees_with_torch(arguments: dict[str, Any], assume: dict[str, object], tmp_path: Path) -> None:
    module = seeded(encoder(**arguments))
    source = vectors(N_SOURCE, 1)
    with open_checkpoint(saved_state(module, tmp_path), assume={"n_heads": N_HEADS, **assume}) as checkpoint:
        assert checkpoint.info.unexpected == ()
        model = checkpoint.load_model()
    assert_agrees(run_trace(model, Inputs(embeddings=source.numpy())), *maps(module, source))


def test_an_encoder_is_found_inside_a_module_of_ones_own(tmp_path: Path) -> None:
    """Its norm is not that of the module around it, though both are called norm."""
    inner = encoder()
    parts = {"table": nn.Embedding(7, D_MODEL), "transformer_encoder": inner, "norm": nn.LayerNorm(D_MODEL)}
    module = seeded(nn.ModuleDict({"body": nn.ModuleDict(parts)}))
    source = vectors(N_SOURCE, 1)
    with open_checkpoint(saved_state(module, tmp_path), assume={"n_heads": N_HEADS}) as checkpoint:
        assert set(checkpoint.info.unexpected) == {"body.table.weight", "body.norm.weight", "body.norm.bias"}
        assert any("3 tensors that this model does not use" in warning for warning in checkpoint.info.warnings)
        model = checkpoint.load_model()
    assert_agrees(run_trace(model, Inputs(embeddings=source.numpy())), *maps(inner, source))


@pytest.mark.parametrize(
    ("arguments", "assume"), [({}, {}), (ARGUMENTS, OTHERWISE), ({"bias": False}, {})], ids=["post", "pre", "no-bias"]
)
def test_a_whole_transformer_agrees_with_torch_given_a_causal_mask(
    arguments: dict[str, Any], assume: dict[str, object], tmp_path: Path
) -> None:
    module = seeded(transformer(**arguments))
    source, target = vectors(N_SOURCE, 1), vectors(N_TARGET, 2)
    with open_checkpoint(saved_state(module, tmp_path), assume={"n_heads": N_HEADS, **assume}) as checkpoint:
        assert checkpoint.info.unexpected == ()
        model = checkpoint.load_model()
    trace = run_trace(model, Inputs(embeddings=source.numpy(), decoder_embeddings=target.numpy()))
    causal = nn.Transformer.generate_square_subsequent_mask(N_TARGET)
    assert_agrees(trace, *maps(module, source, target, tgt_mask=causal))


@pytest.mark.parametrize(
    ("arguments", "assume"), [({}, {}), (ARGUMENTS, OTHERWISE), ({"bias": False}, {})], ids=["post", "pre", "no-bias"]
)
def test_a_lone_layer_of_an_encoder_is_one_with_its_feed_forward(
    arguments: dict[str, Any], assume: dict[str, object], tmp_path: Path
) -> None:
    layer = seeded(nn.TransformerEncoderLayer(D_MODEL, N_HEADS, D_HIDDEN, batch_first=True, **arguments))
    source = vectors(N_SOURCE, 1)
    folder = saved_state(nn.ModuleDict({"block": layer}), tmp_path)
    with open_checkpoint(folder, assume={"n_heads": N_HEADS, **assume}) as checkpoint:
        assert checkpoint.info.family == "torch_encoder_layer" and checkpoint.info.unexpected == ()
        model = checkpoint.load_model()
    assert_agrees(run_trace(model, Inputs(embeddings=source.numpy())), *maps(layer, source))


def test_a_decoder_alone_is_written_as_no_family(tmp_path: Path) -> None:
    module = nn.TransformerDecoder(nn.TransformerDecoderLayer(D_MODEL, N_HEADS, D_HIDDEN), 2)
    with open_checkpoint(saved_state(module, tmp_path), assume={"n_heads": N_HEADS}) as checkpoint:
        assert checkpoint.config is not None
        assert expressing_families(checkpoint.config) == ()
        with pytest.raises(ConfigError, match="encoder has no layers"):
            express(checkpoint.config, family_named("t5"))


@pytest.mark.parametrize("is_layer", [False, True], ids=["decoder", "layer"])
@pytest.mark.parametrize(
    ("arguments", "assume"), [({}, {}), (ARGUMENTS, OTHERWISE), ({"bias": False}, {})], ids=["post", "pre", "no-bias"]
)
def test_a_decoder_without_its_encoder_reads_the_output_it_is_given(
    arguments: dict[str, Any], assume: dict[str, object], is_layer: bool, tmp_path: Path
) -> None:
    """Beside it an encoder of other names, which is left out."""
    layer = nn.TransformerDecoderLayer(D_MODEL, N_HEADS, D_HIDDEN, batch_first=True, **arguments)
    module = seeded(layer if is_layer else nn.TransformerDecoder(layer, 3))
    parts = {"table": nn.Embedding(7, D_MODEL), "decoder": module}
    folder = saved_state(nn.ModuleDict(parts if is_layer else {"before": encoder(), **parts}), tmp_path)
    source, target = vectors(N_SOURCE, 1), vectors(N_TARGET, 2)
    with open_checkpoint(folder, assume={"n_heads": N_HEADS, **assume}) as checkpoint:
        assert checkpoint.info.family == ("torch_decoder_layer" if is_layer else "torch_decoder")
        assert all(name.startswith(("table.", "before.")) for name in checkpoint.info.unexpected)
        assert [site.site for site in checkpoint.info.sites] == ["decoder.self", "decoder.cross"]
        model = checkpoint.load_model()
    trace = run_trace(model, Inputs(embeddings=source.numpy(), decoder_embeddings=target.numpy()))
    causal = nn.Transformer.generate_square_subsequent_mask(N_TARGET)
    seen, output = maps(module, target, source, tgt_mask=causal)
    assert_agrees(trace, {site.replace("encoder", "decoder"): found for site, found in seen.items()}, output)


@pytest.mark.parametrize("bias", [True, False])
def test_a_lone_attention_gives_its_own_output(bias: bool, tmp_path: Path) -> None:
    module = seeded(nn.MultiheadAttention(D_MODEL, N_HEADS, bias=bias, batch_first=True))
    source = vectors(N_SOURCE, 1)
    with open_checkpoint(saved_state(module, tmp_path), assume={"n_heads": N_HEADS}) as checkpoint:
        model = checkpoint.load_model()
    seen, output = maps(module, source, source, source)
    assert_agrees(run_trace(model, Inputs(embeddings=source.numpy())), {"encoder.self": seen["encoder.self"]}, output)


@pytest.mark.parametrize("make", [encoder, transformer, lambda: nn.MultiheadAttention(D_MODEL, N_HEADS)])
def test_without_the_number_of_heads_the_tensors_are_listed_and_it_is_asked_for(make: Any, tmp_path: Path) -> None:
    with open_checkpoint(saved_state(make(), tmp_path)) as checkpoint:
        assert checkpoint.tensors
        with pytest.raises(ConfigError, match=r"torch\.nn\.\w+'s, but the number of heads .* give n_heads, the"):
            checkpoint.load_model()


def test_heads_that_do_not_divide_the_width_are_refused(tmp_path: Path) -> None:
    with (
        open_checkpoint(saved_state(encoder(), tmp_path), assume={"n_heads": 4}) as checkpoint,
        pytest.raises(ConfigError, match="n_heads is 4 and d_model is 30"),
    ):
        checkpoint.load_model()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ids": [1, 2]}, "this model reads embeddings: give them"),
        ({"embeddings": np.zeros((3, 8))}, "embeddings are 8 wide: this model takes vectors of 30"),
        ({"embeddings": np.zeros((3, D_MODEL)), "decoder_ids": [1]}, "decoder_ids were given, but"),
    ],
)
def test_inputs_of_another_kind_or_width_are_refused(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with open_checkpoint(saved_state(encoder(), tmp_path), assume={"n_heads": N_HEADS}) as checkpoint:
        model = checkpoint.load_model()
    with pytest.raises(TraceError, match=message):
        run_trace(model, Inputs(**given))
