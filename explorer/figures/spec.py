"""What a figure shows and how large it is printed, decided before anything is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.results import ModelInfo
from core_model.sites import ATTENTION_SITES
from explorer.figures.files import ExportError
from explorer.state.app_state import ModelInput
from explorer.theme.token_text import Name, token_text
from explorer.viewmodels.records import COLORMAPS, HeatmapPicture, Span

WIDTHS_MM = (30.0, 1000.0)
RESOLUTIONS = (72, 2400)
FONT_SIZES = (4.0, 24.0)
_CAPTION_TEXT = 120
"""Characters of the input text that the caption quotes."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where the numbers come from, as the caption and the data files state it."""

    model: str
    family: str
    site: str
    layer: int
    head: int
    dtype: str
    """As stored in the checkpoint."""
    header_sha256: str
    """Of the checkpoint's header and config."""
    text: str
    target: str = ""
    """What the decoder was given, where there are two texts."""
    file: str = ""
    """Name of the picture or the sound that was given."""

    @classmethod
    def of(cls, info: ModelInfo, inputs: ModelInput, *, site: str, layer: int, head: int) -> Provenance:
        """The provenance of one head of an opened checkpoint, over what it was given."""
        return cls(
            model=info.name,
            family=info.family or "unknown family",
            site=site,
            layer=layer,
            head=head,
            dtype=info.dtype,
            header_sha256=info.header_sha256,
            text=" / ".join(text for text in (inputs.text, inputs.pair) if text),
            target=inputs.target,
            file=" / ".join(file.name for file in inputs.files),
        )

    @property
    def site_label(self) -> str:
        """What people call the site."""
        return ATTENTION_SITES.get(self.site, self.site)


@dataclass(frozen=True, kw_only=True)
class FigureOptions:
    """What its author chooses. Raises ExportError for a value outside its limits."""

    width_mm: float = 85.0
    dpi: int = 300
    """Pixels an inch of a PNG."""
    font_size: float = 7.0
    """Points."""
    colormap: str | None = None
    """None: as on screen."""
    labels: bool = True
    """Tokens at the axes; their indices otherwise."""
    caption: bool = True

    def __post_init__(self) -> None:
        for name, value, (low, high), unit in (
            ("width", self.width_mm, WIDTHS_MM, " mm"),
            ("resolution", self.dpi, RESOLUTIONS, " dpi"),
            ("font size", self.font_size, FONT_SIZES, " pt"),
        ):
            if not low <= value <= high:
                raise ExportError(f"The {name} is {value:g}{unit}: choose from {low:g} to {high:g}{unit}.")
        if self.colormap is not None and self.colormap not in COLORMAPS:
            raise ExportError(f"The colour map is {self.colormap!r}: choose one of {', '.join(COLORMAPS)}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class FigureSpec:
    """The picture that the panel draws, where it comes from, and its author's choices. Figures are always light."""

    picture: HeatmapPicture
    provenance: Provenance
    options: FigureOptions = FigureOptions()

    @property
    def title(self) -> str:
        """Written into the file, not onto the figure."""
        return f"{self.provenance.model}: {self.picture.title}"

    @property
    def colormap(self) -> str:
        return self.options.colormap or self.picture.colormap

    @property
    def caption(self) -> str:
        """One paragraph that names everything a reader needs to make the figure again.

        What must not be torn apart by the end of a line is joined by no-break spaces.
        """
        source = self.provenance
        read = " with ".join(part for part in (_one_line(source.file), _quoted(source.text)) if part)
        parts = (
            f"{source.model} ({source.family}, {source.dtype}, header\u00a0sha256\u00a0{source.header_sha256[:8]})",
            f"{source.site_label}, layer\u00a0{source.layer}, head\u00a0{source.head}",
            self.picture.scale_name,
            self.picture.note.partition(";")[0],  # what follows is a hint for the screen
            " → ".join(part for part in (read, _quoted(source.target)) if part),
        )
        return "\u00a0· ".join(part for part in parts if part)

    @property
    def row_texts(self) -> tuple[str, ...]:
        """What stands at each row on the figure; empty for indices alone."""
        return self._texts(self.picture.row_labels, self.picture.rows)

    @property
    def col_texts(self) -> tuple[str, ...]:
        """What stands at each column on the figure; empty for indices alone."""
        return self._texts(self.picture.col_labels, self.picture.cols)

    def _texts(self, tokens: tuple[str, ...], span: Span) -> tuple[str, ...]:
        shown = tokens[slice(*span)] if self.options.labels else ()
        return tuple(token if isinstance(token, Name) else token_text(token) for token in shown)


def _quoted(text: str) -> str:
    return f"“{_one_line(text)}”" if text else ""


def _one_line(text: str) -> str:
    """The text without line breaks, cut to the length that a caption can carry."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _CAPTION_TEXT else flat[: _CAPTION_TEXT - 1] + "…"
