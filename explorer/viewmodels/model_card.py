"""What a checkpoint is, as facts that say how sure they are."""

from __future__ import annotations

from core_model.results import ModelInfo
from explorer.state.app_state import AppState, OpenedModel
from explorer.viewmodels.facts import FactRow, FactSection, FactSheet, Mark
from explorer.viewmodels.sites import site_name
from explorer.viewmodels.sizes import bytes_text, count_text

_OWN_FAMILY = "native"
"""What core_model calls models that were trained here."""
_LISTED = 40
"""Tensor names shown of a longer list; the rest are counted."""


def model_card(opened: OpenedModel, state: AppState) -> FactSheet:
    """Everything that is known of the model, gravest first."""
    info = opened.info
    sections = (
        _troubles(info),
        _overview(opened),
        FactSection(
            title="Facts",
            rows=tuple(
                FactRow(name=fact.name, value=fact.value, mark="" if fact.origin == "stated" else fact.origin)
                for fact in info.facts
            ),
        ),
        FactSection(
            title="Attention sites",
            rows=tuple(
                FactRow(name=site_name(site.site), value=f"{site.n_layers} layers of {site.n_heads} heads, {site.mask}")
                for site in info.sites
            ),
        ),
        _names("Tied weights", info.tied, ""),
        _names("Missing weights", info.missing, "error"),
        _names("Mis-shaped weights", info.misshaped, "error"),
        _names("Unexpected weights", info.unexpected, "warning"),
        _source(info),
    )
    return FactSheet(sections=tuple(section for section in sections if section.rows))


def short_summary(info: ModelInfo) -> str:
    """Sizes in the space of a title: "decoder 2L 4H float32"."""
    stacks = [
        f"{site.site.partition('.')[0]} {site.n_layers}L {site.n_heads}H"
        for site in info.sites
        if site.site.endswith(".self")
    ]
    return f"{' + '.join(stacks)} {info.dtype}".strip()


def health(info: ModelInfo) -> tuple[Mark, str]:
    """How the checkpoint is, in one word for its dot and one sentence."""
    if info.refusal:
        return "error", info.refusal
    if info.missing or info.misshaped:
        n = len(info.missing) + len(info.misshaped)
        return "error", f"{n} weights are missing or mis-shaped: the model cannot run."
    if info.warnings or info.unexpected:
        n = len(info.warnings) + len(info.unexpected)
        return "warning", f"{n} things to know: see the model card."
    return "ok", "All weights are there, and all were used."


def _troubles(info: ModelInfo) -> FactSection:
    rows = [FactRow(name="", value=_sentence(text), mark="warning") for text in info.warnings]
    if info.refusal:
        rows.insert(0, FactRow(name="", value=_sentence(info.refusal), mark="error"))
    return FactSection(title="To know", rows=tuple(rows))


def _sentence(text: str) -> str:
    """With a capital, unless it begins with the name of a file or tensor."""
    return text[:1].upper() + text[1:] if text.partition(" ")[0].isalpha() else text


def _overview(opened: OpenedModel) -> FactSection:
    info = opened.info
    is_typed = "text" in opened.reads and not opened.has_tokenizer
    tokenizer = "found" if opened.has_tokenizer else "none: type token ids" if is_typed else "none"
    rows = (
        *_origin(info),
        FactRow(name="parameters", value=count_text(info.n_parameters)),
        FactRow(name="stored", value=f"{bytes_text(info.n_bytes)}, {info.dtype}"),
        FactRow(name="input", value=info.input_length),
        FactRow(name="tokenizer", value=tokenizer),
    )
    return FactSection(title=info.name, rows=rows)


def _origin(info: ModelInfo) -> tuple[FactRow, ...]:
    """Whose kind of model it is."""
    if info.family == _OWN_FAMILY:
        own = FactRow(name="family", value="own run", tooltip="Trained with Transformer Explorer.")
        if info.run is None:
            return (own,)
        return own, FactRow(name="trained", value=info.run.progress, tooltip="Updates made of those planned.")
    return (
        FactRow(name="family", value=info.family or "unknown", mark="" if info.family else "unknown"),
        FactRow(
            name="architecture", value=info.architecture or "not stated", mark="" if info.architecture else "unknown"
        ),
    )


def _names(title: str, names: tuple[str, ...], mark: Mark) -> FactSection:
    rows = [FactRow(name="", value=name, mark=mark, is_token=True) for name in names[:_LISTED]]
    if len(names) > _LISTED:
        rows.append(FactRow(name="", value=f"and {len(names) - _LISTED} more", mark=mark))
    return FactSection(title=title, rows=tuple(rows))


def _source(info: ModelInfo) -> FactSection:
    rows = (
        FactRow(name="path", value=str(info.path)),
        FactRow(
            name="header sha256", value=info.header_sha256, tooltip="Of the header and the config, not of the weights."
        ),
    )
    return FactSection(title="Source", rows=rows)
