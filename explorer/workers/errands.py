"""How errands are done: one function a kind, on a lane's thread."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from core_model.cancel import CancelToken, Progress
from core_model.checkpoint.hub_offer import Offer
from core_model.errors import CheckpointError
from core_model.results import RunInfo
from explorer.state.app_state import CacheListing, OpenedModel
from explorer.state.errands import (
    CacheQuery,
    ConvertPickleQuery,
    DownloadQuery,
    HealthQuery,
    KilledRunsQuery,
    OfferQuery,
    SaveAsFamilyQuery,
)
from explorer.workers.engine import Engine


def answer_health(engine: Engine, query: HealthQuery, cancel: CancelToken, progress: Progress) -> OpenedModel:
    engine.checkpoint(query.source).check_health(cancel=cancel, progress=progress)
    return engine.opened(query.source)


def answer_save(engine: Engine, query: SaveAsFamilyQuery, cancel: CancelToken, progress: Progress) -> Path:
    from core_model.checkpoint.convert import convert_opened

    source = query.source
    convert_opened(
        engine.checkpoint(source), query.folder, query.family, lambda: engine.model(source, cancel, progress)
    )
    return query.folder


def answer_pickle(engine: Engine, query: ConvertPickleQuery, cancel: CancelToken, progress: Progress) -> Path:
    from core_model.checkpoint.pickles import convert_pickle

    convert_pickle(query.path, query.folder, cancel=cancel, progress=progress)
    return query.folder


def answer_cache(engine: Engine, query: CacheQuery, cancel: CancelToken, progress: Progress) -> CacheListing:
    from core_model.checkpoint.hub_cache import cached_models

    try:
        return CacheListing(models=cached_models())
    except CheckpointError as error:
        return CacheListing(problem=str(error))


def answer_killed_runs(
    engine: Engine, query: KilledRunsQuery, cancel: CancelToken, progress: Progress
) -> Mapping[Path, RunInfo]:
    from core_model.training.marks import killed_runs

    return killed_runs(query.places)


def answer_offer(engine: Engine, query: OfferQuery, cancel: CancelToken, progress: Progress) -> Offer:
    from core_model.checkpoint.hub import look_up

    return look_up(query.repository, query.revision)


def answer_download(engine: Engine, query: DownloadQuery, cancel: CancelToken, progress: Progress) -> Path:
    from core_model.checkpoint.hub import download

    return download(query.repository, query.revision, cancel=cancel, progress=progress)
