"""Work that is done once because a command said so, whatever the state becomes meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Generic

from core_model.checkpoint.hub_offer import Offer
from core_model.results import RunInfo
from explorer.state.app_state import CacheListing, OpenedModel
from explorer.state.moves import Move
from explorer.state.queries import LaneName, Query, R
from explorer.state.source import Source


@dataclass(frozen=True, kw_only=True)
class ErrandQuery(Query[R]):
    """A question of a command."""

    lane: ClassVar[LaneName] = "errands"
    doing: ClassVar[str] = "working"


@dataclass(frozen=True, kw_only=True)
class HealthQuery(ErrandQuery[OpenedModel]):
    """What do all values of this checkpoint say of its health?"""

    failed: ClassVar[str] = "The weights cannot be checked"
    doing: ClassVar[str] = "checking the weights"
    source: Source


@dataclass(frozen=True, kw_only=True)
class SaveAsFamilyQuery(ErrandQuery[Path]):
    """Write the model as a Hugging Face folder of a family. Answer: the folder."""

    failed: ClassVar[str] = "The model cannot be saved"
    doing: ClassVar[str] = "saving the model"
    source: Source
    family: str
    folder: Path


@dataclass(frozen=True, kw_only=True)
class ConvertPickleQuery(ErrandQuery[Path]):
    """Write the weights of a pickle as safetensors. Answer: the folder."""

    failed: ClassVar[str] = "The pickle cannot be converted"
    doing: ClassVar[str] = "converting the pickle"
    path: Path
    folder: Path


@dataclass(frozen=True, kw_only=True)
class CacheQuery(ErrandQuery[CacheListing]):
    """What does the Hub's local cache hold? It waits for no other errand."""

    lane: ClassVar[LaneName] = "io"
    doing: ClassVar[str] = "listing the cache"


@dataclass(frozen=True, kw_only=True)
class KilledRunsQuery(ErrandQuery[Mapping[Path, RunInfo]]):
    """Which runs in these places were killed, by folder? Each is told once."""

    lane: ClassVar[LaneName] = "io"
    doing: ClassVar[str] = "looking for runs"
    places: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class OfferQuery(ErrandQuery[Offer]):
    """What would a download from the Hugging Face Hub fetch? It opens a connection, and fetches nothing."""

    failed: ClassVar[str] = "The model cannot be downloaded"
    doing: ClassVar[str] = "asking the Hub"
    repository: str
    revision: str


@dataclass(frozen=True, kw_only=True)
class DownloadQuery(ErrandQuery[Path]):
    """Fetch a model from the Hugging Face Hub. Answer: its folder."""

    failed: ClassVar[str] = "The model cannot be downloaded"
    doing: ClassVar[str] = "downloading"
    repository: str
    revision: str


@dataclass(frozen=True, kw_only=True)
class Errand(Generic[R]):
    """A question to be answered once, and what its answer does. One of a kind is on its way at a time.

    `learn` turns the answer into what is to be known or told, `then` into something a person can undo.
    """

    query: ErrandQuery[R]
    learn: Callable[[R], Move]
    then: Callable[[R], Move] | None = None
