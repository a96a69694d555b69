from __future__ import annotations

import shlex
import subprocess
import sys
import tomllib
from types import SimpleNamespace

import pytest

from core_model.errors import CoreError
from explorer import cli as command_line
from explorer.cli import VERBS, make_parser
from tests.explorer.cli.conftest import ENTRY, ROOT, Cli, Done


@pytest.fixture
def verb(monkeypatch: pytest.MonkeyPatch):
    """A verb `do` whose run is given by the test."""
    module = SimpleNamespace(add_arguments=lambda parser: None, run=None)
    monkeypatch.setitem(VERBS, "do", command_line.Verb(module="verb.of.the.test", summary="for a test"))
    monkeypatch.setitem(sys.modules, "verb.of.the.test", module)
    return module


def raising(error: BaseException):
    def run(arguments: object) -> int:
        raise error

    return run


def test_help_lists_every_verb_and_how_things_are_counted(cli: Cli):
    done = cli("--help")
    assert done.status == 0
    for name, row in VERBS.items():
        assert f"{name:12}{row.summary}" in done.out
    assert "counted from 0; rows are queries, columns are keys" in done.out


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_a_help_with_a_word_on_every_argument(cli: Cli, name: str):
    done = cli(name, "--help")
    assert done.status == 0 and done.out.startswith(f"usage: transformer-explorer {name}")
    (verbs,) = (action for action in make_parser(name)._actions if isinstance(action.choices, dict))
    assert isinstance(verbs.choices, dict)
    for action in verbs.choices[name]._actions:
        assert action.help, action.dest


def test_the_version_is_that_of_the_project(cli: Cli):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cli("--version").out == f"transformer-explorer {project['version']}\n"


def test_help_imports_nothing_that_takes_time():
    code = (
        "import sys; from explorer.cli import main; main(['--help']);"
        "print([m for m in ('numpy', 'torch', 'PySide6', 'matplotlib', 'msgspec', 'tokenizers') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nonsense",), "'nonsense' is neither a verb nor a file or folder"),
        (("attention", "x"), "the following arguments are required: --layer, --head, --out"),
        (
            ("attention", "x", "--text", "a", "--layer", "one", "--head", "0", "--out", "f.svg"),
            "invalid int value: 'one'",
        ),
        (("screenshot", "--out", "a.png", "--size", "big"), "'big' is not a size like 1600x1000"),
        (("attention", "x", "--rows", "4:2"), "'4:2' is not a range like 0:40"),
    ],
)
def test_arguments_that_make_no_command_are_one_line_and_status_2(cli: Cli, arguments, message):
    done = cli(*arguments)
    assert done.status == 2 and done.out == ""
    assert done.err.count("\n") == 1
    assert done.err.startswith("transformer-explorer: ") and message in done.err and "--help" in done.err


def test_what_a_person_can_mend_is_one_line_and_status_2(cli: Cli, verb):
    verb.run = raising(CoreError("The name a\nb is taken."))
    done = cli("do")
    assert (done.status, done.err) == (2, "transformer-explorer: The name a\\nb is taken.\n")


def test_a_fault_of_the_program_shows_its_traceback_and_status_1(cli: Cli, verb):
    verb.run = raising(ZeroDivisionError("of ours"))
    done = cli("do")
    assert done.status == 1
    assert "Traceback" in done.err and "ZeroDivisionError: of ours" in done.err


def test_ctrl_c_is_quiet_and_status_130(cli: Cli, verb):
    verb.run = raising(KeyboardInterrupt())
    assert cli("do") == Done(130, "", "")


def test_a_reader_that_goes_away_is_no_error(process):
    done = process("--help")
    done.stdout.close()
    assert done.wait(60) in (0, 141)
    assert done.stderr.read() == ""
    done.stderr.close()


def shell(streams: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command with its streams redirected as a shell does it."""
    command = shlex.join([sys.executable, "-c", ENTRY, *map(str, arguments)])
    return subprocess.run(f"{command} {streams}", shell=True, capture_output=True, text=True, cwd=ROOT, timeout=60)


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_no_fault(decoder, streams):
    done = shell(streams, "inspect", decoder)
    assert (done.returncode, done.stderr) == (0, "")


def test_output_that_nothing_can_take_is_said(decoder):
    done = shell(">/dev/full", "inspect", decoder)
    said = (
        "transformer-explorer: The output cannot be written: its disk is full; free some space or send it elsewhere.\n"
    )
    assert (done.returncode, done.stderr) == (2, said)


def test_closed_standard_input_is_said(decoder, tmp_path):
    done = shell("<&-", "attention", decoder, "--text", "-", "--layer", 0, "--head", 0, "--out", tmp_path / "a.npz")
    assert done.returncode == 2 and "Standard input is closed" in done.stderr


def test_text_that_the_terminal_cannot_show_is_spelled(process, decoder):
    done = process("inspect", decoder.parent / "中", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    _, err = done.communicate(timeout=60)
    assert done.returncode == 2
    assert "\\u4e2d" in err


def test_without_a_verb_the_window_opens(cli: Cli, monkeypatch):
    opened: list[object] = []
    monkeypatch.setattr("explorer.verbs.window.check_window", lambda: None)
    monkeypatch.setitem(sys.modules, "explorer.app", SimpleNamespace(run=lambda *given: opened.append(given) or 0))
    assert cli().status == 0
    assert opened == [(None, ())]


@pytest.mark.parametrize("verb", [("open",), ()])
def test_a_path_is_opened_with_a_verb_and_without_as_the_next_start_finds_it_too(cli: Cli, monkeypatch, tmp_path, verb):
    opened: list[object] = []
    monkeypatch.setattr("explorer.verbs.window.check_window", lambda: None)
    monkeypatch.setitem(sys.modules, "explorer.app", SimpleNamespace(run=lambda *given: opened.append(given) or 0))
    for folder in ("model", "start"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "start")
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in ("../model", "./../model", "~/model")[: 3 if verb else 2]:
        assert cli(*verb, path).status == 0
        assert opened.pop() == (tmp_path / "model", ())


def test_a_verb_is_no_path_though_a_folder_has_its_name(cli: Cli, monkeypatch, tmp_path):
    (tmp_path / "inspect").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "the following arguments are required: PATH" in cli("inspect").err


def test_open_passes_on_its_path_and_what_is_known_of_it_and_the_status_back(cli: Cli, monkeypatch, tmp_path):
    opened: list[object] = []
    monkeypatch.setattr("explorer.verbs.window.check_window", lambda: None)
    monkeypatch.setitem(sys.modules, "explorer.app", SimpleNamespace(run=lambda *given: opened.append(given) or 7))
    assert cli("open", tmp_path).status == 7
    assert cli("open", tmp_path, "--base", "llama", "--heads", 4).status == 7
    assert opened == [(tmp_path, ()), (tmp_path, (("base", "llama"), ("n_heads", 4)))]


def test_open_refuses_what_is_not_there_before_any_window(cli: Cli, tmp_path):
    done = cli("open", tmp_path / "none")
    assert done.status == 2
    assert f"There is no file or folder {tmp_path / 'none'}" in done.err


def test_open_says_when_no_window_can_be_shown(cli: Cli, monkeypatch, tmp_path):
    from explorer.preflight import DisplayError

    def refuse() -> None:
        raise DisplayError("There is no display")

    monkeypatch.setattr("explorer.verbs.window.check_window", refuse)
    assert cli("open", tmp_path) == Done(2, "", "transformer-explorer: There is no display\n")


def test_a_log_on_a_full_disk_ends_no_training(tmp_path):
    done = shell("2>/dev/full", "train", "--task", "copy", "--steps", 3, "--out", tmp_path / "run")
    assert done.returncode == 0 and (tmp_path / "run" / "model.safetensors").is_file()


def test_an_error_that_nobody_can_be_told_has_its_status(tmp_path):
    assert shell("2>/dev/full", "inspect", tmp_path / "nowhere").returncode == 2
