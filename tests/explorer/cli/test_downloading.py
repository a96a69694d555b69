from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core_model.checkpoint.hub_stand_in import NAME, StandIn, hub_of_one_model
from tests.explorer.cli.conftest import Cli


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with hub_of_one_model(tmp_path, monkeypatch) as server:
        yield server


def test_the_folder_that_is_printed_opens(cli: Cli, hub: StandIn):
    done = cli("download", NAME)
    assert done.err.startswith(f"{NAME}: 3 files, ")
    assert done.status == 0 and cli("inspect", done.out.strip()).out.startswith(NAME)


def test_what_is_not_on_the_hub_is_one_line(cli: Cli, hub: StandIn):
    hub.errors[NAME] = 404, "RepoNotFound"
    done = cli("download", NAME)
    assert done.status == 2 and done.err.count("\n") == 1 and "is not on the Hub" in done.err
