"""Start Transformer Explorer from a checkout: `python3 main.py [ARGUMENTS]`; run its tests: `python3 main.py test`.

When the interpreter that runs this file has the dependencies of pyproject.toml, nothing is made or installed. Otherwise
`.venv` beside this file is made, the versions pinned in constraints.txt are installed into it, and the start goes on
there. What a person can mend (no network, a full disk ...) is one line on stderr and exit status 2.
"""

import sys

# Before anything that an older Python lacks; this file alone has to stay readable for it.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.stderr.write(
        "Transformer Explorer needs Python 3.11 or newer, and {} is Python {}.{}: start main.py with a newer one, "
        "for example python3.11 main.py\n".format(sys.executable, *sys.version_info)
    )
    sys.exit(2)

import os
from collections.abc import Sequence
from pathlib import Path

from core_model.errors import CoreError
from explorer.bootstrap.prepare import prepare

ROOT = Path(__file__).resolve().parent


def main(arguments: Sequence[str]) -> int:
    """Find or make an interpreter that has the dependencies, then run the application or the tests in it."""
    wants_tests = list(arguments[:1]) == ["test"]
    try:
        python = prepare(ROOT, with_tests=wants_tests)
        if python is not None:
            return hand_over(python, arguments)
        return run_tests(arguments[1:]) if wants_tests else run_application(arguments)
    except CoreError as error:
        print(f"main.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("main.py: interrupted", file=sys.stderr)
        return 130


def run_application(arguments: Sequence[str]) -> int:
    from explorer.cli import main as explorer_main

    return explorer_main(list(arguments))


def run_tests(arguments: Sequence[str]) -> int:
    """Run pytest in the checkout. The tests draw off screen unless asked otherwise; even that needs Qt's libraries."""
    from explorer.preflight import check_window

    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    check_window()
    os.chdir(ROOT)
    import pytest

    return pytest.main(list(arguments))


def hand_over(python: Path, arguments: Sequence[str]) -> int:
    """Go on in another interpreter: in place of this process where the system can do that, else as its child."""
    command = [str(python), str(ROOT / "main.py"), *arguments]
    if os.name == "posix":
        os.execv(python, command)
    import subprocess

    return subprocess.call(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
