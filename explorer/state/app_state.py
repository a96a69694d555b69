"""What the person has asked for and what is known about it: one frozen record for the whole window.

Intents (source, inputs, selection, display) are written by commands. Facts (model, tokens, trace) are written when a
worker has answered. A fact names the intent it belongs to, so one that has been overtaken is recognised and never used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from core_model.checkpoint.hub_cache import CachedModel
from core_model.results import ModelInfo, Reads, SiteInfo
from explorer.state.export import ExportChoices
from explorer.state.given_file import GivenFile
from explorer.state.source import Source, Span
from explorer.state.tensors import TensorChoice
from explorer.state.training import TrainingDraft, TrainingFacts, WatchedHead

if TYPE_CHECKING:
    from core_model.tokenize import Encoding

ScaleName: TypeAlias = Literal["linear", "log", "row_max", "sink_excluded"]
ColormapName: TypeAlias = Literal["viridis", "cividis", "magma", "grey"]
ThemeName: TypeAlias = Literal["system", "light", "dark"]
LayoutName: TypeAlias = Literal["explore", "train", "learn"]


@dataclass(frozen=True, kw_only=True)
class ModelInput:
    """What the model reads: a text, the second of a pair, the decoder's; a picture, a sound.

    Ids in the place of texts where there is no tokenizer.
    """

    text: str = ""
    pair: str = ""
    target: str = ""
    picture: GivenFile | None = None
    sound: GivenFile | None = None

    @property
    def files(self) -> tuple[GivenFile, ...]:
        """The files among it."""
        return tuple(file for file in (self.picture, self.sound) if file is not None)

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts among it."""
        return tuple(text for text in (self.text, self.pair, self.target) if text)

    def only(self, kinds: Iterable[Reads]) -> ModelInput:
        """What of it is of these kinds."""
        return ModelInput(**{kind: getattr(self, kind) for kind in kinds})

    def as_on_disk(self) -> ModelInput:
        """The same with its files as they are now."""
        picture, sound = (file and GivenFile.at(file.path) for file in (self.picture, self.sound))
        return replace(self, picture=picture, sound=sound)


@dataclass(frozen=True, kw_only=True)
class OpenedModel:
    """The fact about a source: what it turned out to be.

    It `reads` what it can be given in this window, token ids in the place of texts where it has no tokenizer; nothing
    where it offers no attention, or is given vectors.
    """

    source: Source
    info: ModelInfo
    has_tokenizer: bool
    reads: tuple[Reads, ...]
    normalizers: str
    """What turns its scores into weights: "softmax", "relu", or both; empty where nothing does."""
    families: tuple[tuple[str, str], ...] = ()
    """Key and label of each family it can be saved as."""

    def can_run_on(self, inputs: ModelInput) -> bool:
        """Whether there is something for its first stack, or for one of its towers."""
        return any(kind in self.reads and getattr(inputs, kind) for kind in ("text", "picture", "sound"))

    def first_site(self, tokens: Tokens) -> str:
        """The first attention site that was given something to read."""
        return next(site.site for site in self.info.sites if tokens.has(site.site))

    def site(self, key: str) -> SiteInfo | None:
        """The attention site of that name; None where the model has no such site."""
        return next((site for site in self.info.sites if site.site == key), None)


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The fact about an input: its tokens, patches or frames in each stack that reads some of it.

    A site whose queries are others, such as the probe that pools a tower, stands beside the stacks. `notes` say what
    was done to a picture or a sound so that the model can read it.
    """

    source: Source
    inputs: ModelInput
    stacks: Mapping[str, Encoding]
    notes: tuple[str, ...] = ()

    def has(self, site: str) -> bool:
        """Whether anything was given that this site reads: of two towers one may be left out."""
        return site.partition(".")[0] in self.stacks

    def queries(self, site: str) -> Encoding:
        """The tokens along the rows of a site's matrix."""
        return self.stacks[site if site in self.stacks else site.partition(".")[0]]

    def keys(self, site: str) -> Encoding:
        """The tokens along the columns of a site's matrix."""
        return self.stacks["encoder" if site == "decoder.cross" else site.partition(".")[0]]


@dataclass(frozen=True, kw_only=True)
class TraceFacts:
    """The fact that a forward pass was run and is kept: the bytes it holds and the seconds it took.

    `info` is the model card after its weights were read, which may have added warnings. `not_numbers` names the
    layers of each site whose attention holds NaN, `notes` say what was computed otherwise than in training.
    """

    source: Source
    inputs: ModelInput
    info: ModelInfo
    n_bytes: int
    seconds: float
    not_numbers: tuple[tuple[str, tuple[int, ...]], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of an attention matrix: row `query`, column `key`, both counted from 0."""

    query: int
    key: int


@dataclass(frozen=True, kw_only=True)
class Selection:
    """The one selection that every view shares. `cell` is locked; a cell under the mouse is AppState.hover.

    `site` is None until a model is there to choose one from.
    """

    site: str | None = None
    layer: int = 0
    head: int = 0
    cell: Cell | None = None


@dataclass(frozen=True, kw_only=True)
class Display:
    """How pictures are drawn, not what they show."""

    scale: ScaleName = "linear"
    colormap: ColormapName = "viridis"


@dataclass(frozen=True, kw_only=True)
class Viewport:
    """The part of the matrix on screen and the device pixels it has: (down, across)."""

    rows: Span
    cols: Span
    size: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Notice:
    """A message to the person, kept for the session. `details` is shown on request, `opens` is offered to be opened."""

    severity: Literal["info", "warning", "error"]
    text: str
    details: str = ""
    opens: Path | None = None


@dataclass(frozen=True, kw_only=True)
class CacheListing:
    """The fact about the Hub's local cache: what it holds, or why it cannot be read."""

    models: tuple[CachedModel, ...] = ()
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class AppState:
    """Everything the window shows, apart from the numbers that workers send."""

    source: Source | None = None
    inputs: ModelInput = ModelInput()
    is_input_kept: bool = False
    """Whether the input is left from another checkpoint: it gives way to the example of a run."""
    selection: Selection = Selection()
    display: Display = Display()
    theme: ThemeName = "system"
    layout: LayoutName = "explore"
    export: ExportChoices = field(default_factory=ExportChoices)
    draft: TrainingDraft = field(default_factory=TrainingDraft)
    watched: WatchedHead = field(default_factory=WatchedHead)
    position_curves: tuple[int, ...] = ()
    """Dimensions of the positional encoding drawn as curves; empty: a few, evenly spread."""
    position_length: int = 128
    tensors: TensorChoice = field(default_factory=TensorChoice)

    model: OpenedModel | None = None
    tokens: Tokens | None = None
    trace: TraceFacts | None = None
    training: TrainingFacts = field(default_factory=TrainingFacts)

    recent: tuple[Path, ...] = ()
    cache: CacheListing | None = None
    """As it was when it was last listed; None before."""
    hover: Cell | None = None
    viewport: Viewport | None = None
    thumbnail_size: int = 64
    """Pixels of one head in the overview."""
    notices: tuple[Notice, ...] = ()

    @property
    def current_model(self) -> OpenedModel | None:
        """The model, when it is the one that was asked for last."""
        return self.model if self.model and self.model.source == self.source else None

    @property
    def current_tokens(self) -> Tokens | None:
        """The tokens, when they are those of the source and the input asked for last."""
        tokens = self.tokens
        return tokens if tokens and tokens.source == self.source and tokens.inputs == self.inputs else None

    @property
    def is_traced(self) -> bool:
        """Whether the model has been run over the input asked for last."""
        return bool(self.trace and self.trace.source == self.source and self.trace.inputs == self.inputs)

    @property
    def locked(self) -> Cell | None:
        """The locked cell, while the matrix has it."""
        return self._inside(self.selection.cell)

    @property
    def pointed(self) -> Cell | None:
        """The cell under the mouse, while the matrix has it: another input or site may have come meanwhile."""
        return self._inside(self.hover)

    @property
    def focus(self) -> Cell | None:
        """The cell to tell about: the locked one, else the one under the mouse."""
        return self.locked or self.pointed

    def _inside(self, cell: Cell | None) -> Cell | None:
        tokens, site = self.current_tokens, self.selection.site
        if cell is None or tokens is None or site is None or not tokens.has(site):
            return None
        return cell if cell.query < len(tokens.queries(site)) and cell.key < len(tokens.keys(site)) else None
