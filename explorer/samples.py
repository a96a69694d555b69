"""The bundled sample models: what each is, the text to show it with and the head worth seeing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from explorer.state.app_state import AppState, ModelInput, Selection
from explorer.state.moves import Move, open_source

SAMPLES_FOLDER = Path(__file__).resolve().parents[1] / "resources" / "samples"


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One entry of resources/samples/manifest.json; `folder` is relative to it. `line` says what the head does."""

    folder: str
    title: str
    line: str
    text: str
    site: str
    layer: int
    head: int
    target: str = ""

    @property
    def path(self) -> Path:
        return SAMPLES_FOLDER / self.folder

    def is_shown(self, state: AppState) -> bool:
        """Whether its head is looked at, over its own text: what `line` says holds for no other."""
        chosen = state.selection
        is_chosen = (chosen.site, chosen.layer, chosen.head) == (self.site, self.layer, self.head)
        return is_chosen and state.inputs == self.inputs

    @property
    def head_name(self) -> str:
        """What its head is known for, and where it is: "induction head (layer 1 head 3)"."""
        return f"{self.title.rpartition(': ')[2]} (layer {self.layer} head {self.head})"

    @property
    def inputs(self) -> ModelInput:
        return ModelInput(text=self.text, target=self.target)

    @property
    def opening(self) -> Move:
        """Open it with its text, at its head."""
        return open_source(
            self.path,
            inputs=self.inputs,
            selection=Selection(site=self.site, layer=self.layer, head=self.head),
            is_sample=True,
        )


@dataclass(frozen=True, kw_only=True)
class _Manifest:
    samples: tuple[Sample, ...]


def bundled_samples(folder: Path = SAMPLES_FOLDER) -> tuple[Sample, ...]:
    """The samples of the manifest, the one to start with first. Raises FileNotFoundError, msgspec.ValidationError."""
    return msgspec.json.decode((folder / "manifest.json").read_bytes(), type=_Manifest).samples
