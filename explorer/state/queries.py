"""What the window wants to know, as frozen records: equal queries have equal answers.

`wanted` turns the state into one query a slot; a slot is a panel's key or one of the facts everything else stands on.
Pure, so what is asked when can be tested without a window or a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from core_model.errors import CoreError, PickleError, TokenizerError
from core_model.results import PositionEncoding, Reduce
from explorer.state.answers import HeadsAnswer, InspectorAnswer, MatrixAnswer, PictureAnswer, TrainingOptions
from explorer.state.app_state import AppState, Cell, ModelInput, OpenedModel, Tokens, TraceFacts
from explorer.state.source import Source, Span

R = TypeVar("R")
LaneName: TypeAlias = Literal["interactive", "io", "errands"]

POOLED_AT_ONCE = 8192 * 8192
"""Cells of a matrix that are pooled while one waits; more are sampled first."""
EXACT_LIMIT = 1024
"""Matrices up to this many rows and columns cross whole, cell by cell; longer ones pooled, with exact tiles on zoom."""


@dataclass(frozen=True, kw_only=True)
class Query(Generic[R]):
    """A question to the engine, and the type of its answer.

    `lane` names the thread that answers, where lower `rank` goes first; `doing` is what the status line says meanwhile,
    `failed` what to say when it cannot, and `remedy` the key of a command that may help then.
    """

    lane: ClassVar[LaneName] = "interactive"
    rank: ClassVar[int] = 1
    doing: ClassVar[str] = "drawing"
    failed: ClassVar[str] = "This picture cannot be computed"
    remedy: ClassVar[str] = ""

    @property
    def failure(self) -> str:
        """What failed, where it depends on what was asked."""
        return self.failed

    def remedy_for(self, error: CoreError) -> str:
        """The remedy, where it depends on what went wrong."""
        return self.remedy


@dataclass(frozen=True, kw_only=True)
class OpenQuery(Query[OpenedModel]):
    """What is this checkpoint?"""

    doing: ClassVar[str] = "opening"
    lane: ClassVar[LaneName] = "io"
    failed: ClassVar[str] = "The checkpoint cannot be opened"
    remedy: ClassVar[str] = "open_folder"
    source: Source

    def remedy_for(self, error: CoreError) -> str:
        """A pickle may be converted."""
        return "convert_pickle" if isinstance(error, PickleError) else self.remedy


@dataclass(frozen=True, kw_only=True)
class ModelCardQuery(Query[OpenedModel]):
    """The same again, for its card; more `warnings` are known once its values were read."""

    lane: ClassVar[LaneName] = "io"
    failed: ClassVar[str] = "The checkpoint cannot be opened"
    source: Source
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class InputQuery(Query[R]):
    """A question about what the model is given; where that is at fault, another is asked for."""

    source: Source
    inputs: ModelInput

    @property
    def given(self) -> str:
        """What is read, in words."""
        names = (("picture", self.inputs.picture), ("sound", self.inputs.sound), ("text", self.inputs.texts))
        return " or the ".join(name for name, given in names if given)

    def remedy_for(self, error: CoreError) -> str:
        """The command that gives another; a tokenizer's error is about a text."""
        if self.inputs.files and not isinstance(error, TokenizerError):
            return "open_picture" if self.inputs.picture else "open_sound"
        return "focus_text"


@dataclass(frozen=True, kw_only=True)
class TokensQuery(InputQuery[Tokens]):
    """Which tokens does this input have in this model?"""

    doing: ClassVar[str] = "reading the input"

    @property
    def failure(self) -> str:
        return f"The {self.given} cannot be read"


@dataclass(frozen=True, kw_only=True)
class TraceQuery(InputQuery[TraceFacts]):
    """Run the model over the input and keep what every other answer is computed from."""

    doing: ClassVar[str] = "running the model"

    @property
    def failure(self) -> str:
        return f"The model cannot be run over the {self.given}"


@dataclass(frozen=True, kw_only=True)
class HeadsQuery(Query[HeadsAnswer]):
    """All heads of a site as small pictures: more work than all other panels together, so it comes last."""

    rank: ClassVar[int] = 2
    trace: TraceQuery
    site: str
    size: int


@dataclass(frozen=True, kw_only=True)
class MatrixQuery(Query[MatrixAnswer]):
    """One head's attention, whole (rows and cols None) or in part, at most `size` pixels."""

    trace: TraceQuery
    site: str
    layer: int
    head: int
    rows: Span | None = None
    cols: Span | None = None
    size: tuple[int, int]
    reduce: Reduce = "max"


@dataclass(frozen=True, kw_only=True)
class InspectorQuery(Query[InspectorAnswer]):
    """One head, and one cell of it when there is one to tell about."""

    trace: TraceQuery
    site: str
    layer: int
    head: int
    cell: Cell | None


@dataclass(frozen=True, kw_only=True)
class PictureQuery(Query[PictureAnswer]):
    """Where in the picture does one of its tokens look?"""

    trace: TraceQuery
    site: str
    layer: int
    head: int
    query: int


@dataclass(frozen=True, kw_only=True)
class PositionsQuery(Query[PositionEncoding]):
    """How one layer of a stack knows order, over at most so many positions."""

    source: Source
    stack: str
    layer: int
    n_positions: int


@dataclass(frozen=True, kw_only=True)
class TrainingOptionsQuery(Query[TrainingOptions]):
    """What can this machine train on?"""

    lane: ClassVar[LaneName] = "io"
    failed: ClassVar[str] = "The devices of this machine cannot be listed"


AnyQuery: TypeAlias = Query[Any]
QueryFunction: TypeAlias = Callable[[AppState], AnyQuery | None]


def wanted(state: AppState, visible: Mapping[str, QueryFunction]) -> dict[str, AnyQuery]:
    """One query a slot: the facts, then what each visible panel asks. Slots with nothing to ask are left out."""
    asked = {slot: ask(state) for slot, ask in (FACTS | dict(visible)).items()}
    return {slot: query for slot, query in asked.items() if query is not None}


def open_query(state: AppState) -> OpenQuery | None:
    return OpenQuery(source=state.source) if state.source else None


def tokens_query(state: AppState) -> TokensQuery | None:
    """Asked as soon as the model is known, if it can be run and there is something to read."""
    model = state.current_model
    if state.source is None or model is None or not model.can_run_on(state.inputs):
        return None
    return TokensQuery(source=state.source, inputs=state.inputs)


def trace_query(state: AppState) -> TraceQuery | None:
    """Asked once the tokens are there, so that every answer that follows has a known length."""
    if state.source is None or state.current_tokens is None:
        return None
    return TraceQuery(source=state.source, inputs=state.inputs)


FACTS: dict[str, QueryFunction] = {"open": open_query, "tokens": tokens_query, "trace": trace_query}
"""Each is asked when the one before it is known; panels ask when all are."""


def traced(state: AppState) -> TraceQuery | None:
    """The forward pass that panels ask about; None until it was run over something that the chosen site reads."""
    tokens, site = state.current_tokens, state.selection.site
    if tokens is None or site is None or not tokens.has(site):
        return None
    return trace_query(state) if state.is_traced else None


def model_card_query(state: AppState) -> ModelCardQuery | None:
    if state.source is None or state.current_model is None:
        return None
    return ModelCardQuery(source=state.source, warnings=state.current_model.info.warnings)


def heads_query(state: AppState) -> HeadsQuery | None:
    trace = traced(state)
    if trace is None or state.selection.site is None:
        return None
    return HeadsQuery(trace=trace, site=state.selection.site, size=state.thumbnail_size)


def matrix_query(state: AppState) -> MatrixQuery | None:
    """The whole matrix, exact where it fits, else pooled; of a very long text a sample of its cells first, at once."""
    trace, chosen, tokens = traced(state), state.selection, state.current_tokens
    if trace is None or chosen.site is None or tokens is None:
        return None
    n_cells = len(tokens.queries(chosen.site)) * len(tokens.keys(chosen.site))
    return MatrixQuery(
        trace=trace,
        site=chosen.site,
        layer=chosen.layer,
        head=chosen.head,
        size=(EXACT_LIMIT, EXACT_LIMIT),
        reduce="sample" if n_cells > POOLED_AT_ONCE else "max",
    )


def matrix_tile_query(state: AppState) -> MatrixQuery | None:
    """The part on screen, closer than the whole shows it; of a sampled whole, the same pooled."""
    whole, tokens, port = matrix_query(state), state.current_tokens, state.viewport
    if whole is None or tokens is None:
        return None
    shape = len(tokens.queries(whole.site)), len(tokens.keys(whole.site))
    is_whole = port is None or (port.rows == (0, shape[0]) and port.cols == (0, shape[1]))
    if is_whole and whole.reduce == "sample":
        return replace(whole, reduce="max")
    if port is None or is_whole or max(shape) <= EXACT_LIMIT:
        return None
    if port.rows[1] > shape[0] or port.cols[1] > shape[1]:
        return None
    return MatrixQuery(
        trace=whole.trace,
        site=whole.site,
        layer=whole.layer,
        head=whole.head,
        rows=port.rows,
        cols=port.cols,
        size=port.size,
    )


def inspector_query(state: AppState) -> InspectorQuery | None:
    trace, chosen = traced(state), state.selection
    if trace is None or chosen.site is None:
        return None
    return InspectorQuery(trace=trace, site=chosen.site, layer=chosen.layer, head=chosen.head, cell=state.focus)


def picture_query(state: AppState) -> PictureQuery | None:
    """Asked where the keys are patches: of the row in focus, else of the first, which is the class token's."""
    trace, chosen, tokens = traced(state), state.selection, state.current_tokens
    if trace is None or chosen.site is None or tokens is None or tokens.keys(chosen.site).unit != "patch":
        return None
    query = state.focus.query if state.focus else 0
    return PictureQuery(trace=trace, site=chosen.site, layer=chosen.layer, head=chosen.head, query=query)


def positions_query(state: AppState) -> PositionsQuery | None:
    """Asked of the model alone: no text is needed to know what its positions are."""
    chosen = state.selection
    if state.source is None or state.current_model is None or chosen.site is None:
        return None
    stack, layer = chosen.site.partition(".")[0], chosen.layer
    return PositionsQuery(source=state.source, stack=stack, layer=layer, n_positions=state.position_length)


def training_options_query(state: AppState) -> TrainingOptionsQuery:
    return TrainingOptionsQuery()
