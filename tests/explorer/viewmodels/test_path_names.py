from __future__ import annotations

from pathlib import Path

import pytest

from explorer.viewmodels.path_names import path_names


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (("/m/gpt2", "/m/bert"), ("gpt2", "bert")),
        (("/m/a/last", "/m/bert", "/m/b/last"), ("last (a)", "bert", "last (b)")),
        (("/x/m/a", "/y/m/a"), ("a (x/m)", "a (y/m)")),
        (("/a", "/m/a", "/"), ("a (/)", "a (m)", "/")),
        ((), ()),
    ],
)
def test_paths_are_named_by_their_end_and_as_much_more_as_tells_them_apart(
    paths: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert path_names([Path(path) for path in paths]) == names
