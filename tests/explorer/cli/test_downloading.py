from __future__ import annotations

from tests.core_model.checkpoint.hub_stand_in import StandIn
from tests.core_model.checkpoint.test_hub import NAME, files, hub  # noqa: F401
from tests.explorer.cli.conftest import Cli


def test_the_folder_that_is_printed_opens(cli: Cli, hub: StandIn):  # noqa: F811
    done = cli("download", NAME)
    assert done.status == 0 and cli("inspect", done.out.strip()).out.startswith(NAME)


def test_what_is_not_on_the_hub_is_one_line(cli: Cli, hub: StandIn):  # noqa: F811
    hub.errors[NAME] = 404, "RepoNotFound"
    done = cli("download", NAME)
    assert done.status == 2 and done.err.count("\n") == 1 and "is not on the Hub" in done.err
