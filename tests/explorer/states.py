"""Small records to test the application with: a model, tokens, a state that has been traced."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from core_model.results import Fact, ModelInfo, SiteInfo
from core_model.tokenize.encoding import Encoding
from explorer.state.app_state import AppState, ModelInput, OpenedModel, Selection, Tokens, TraceFacts
from explorer.state.source import Source

SOURCE = Source(path=Path("/models/tiny"))
INPUTS = ModelInput(text="the cat sat")


def site(key: str, *, n_layers: int = 2, n_heads: int = 4) -> SiteInfo:
    return SiteInfo(
        site=key, label=key.replace(".", " "), n_layers=n_layers, n_heads=n_heads, n_key_heads=n_heads, mask="causal"
    )


def model_info(**changes: object) -> ModelInfo:
    """A decoder of 2 layers with 4 heads."""
    info = ModelInfo(
        name="tiny",
        path=SOURCE.path,
        family="gpt2",
        architecture="GPT2LMHeadModel",
        summary="decoder of 2 layers",
        n_parameters=1234,
        n_bytes=4936,
        dtype="F32",
        max_length=64,
        sites=(site("decoder.self"),),
        facts=(Fact(name="vocabulary", value="50", origin="stated"), Fact(name="heads", value="4", origin="inferred")),
        tied=(),
        missing=(),
        unexpected=(),
        misshaped=(),
        warnings=(),
        refusal=None,
        header_sha256="ab" * 32,
    )
    return replace(info, **changes)


def opened(source: Source = SOURCE, **changes: object) -> OpenedModel:
    model = OpenedModel(
        source=source,
        info=model_info(),
        has_tokenizer=True,
        reads=("text",),
        normalizers="softmax",
    )
    return replace(model, **changes)


def encoding(*texts: str) -> Encoding:
    n = len(texts)
    return Encoding(
        ids=tuple(range(n)),
        texts=texts,
        offsets=(None,) * n,
        type_ids=(0,) * n,
        special=(False,) * n,
        sequence=(0,) * n,
    )


def tokens(*texts: str, source: Source = SOURCE, inputs: ModelInput = INPUTS) -> Tokens:
    return Tokens(source=source, inputs=inputs, stacks={"decoder": encoding(*(texts or ("the", " cat", " sat")))})


def trace_facts(source: Source = SOURCE, inputs: ModelInput = INPUTS) -> TraceFacts:
    return TraceFacts(source=source, inputs=inputs, info=model_info(), n_bytes=100, seconds=0.1)


def traced_state(**changes: object) -> AppState:
    """Everything is known: the model, its tokens, its trace."""
    state = AppState(
        source=SOURCE,
        inputs=INPUTS,
        model=opened(),
        tokens=tokens(),
        trace=trace_facts(),
        selection=Selection(site="decoder.self"),
    )
    return replace(state, **changes)
