"""Qt aborts the process when it finds no display or library; these are asked for before."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from explorer import preflight
from explorer.preflight import DisplayError, check_window, install_advice, wanted_platforms

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere Qt brings all it needs")


def lacking(*missing: str):
    """A dynamic loader that finds every library but these."""

    def load(name: str) -> object:
        for library in missing:
            if library == name or (library.startswith("libxcb") and name.endswith("libqxcb.so")):
                raise OSError(f"{library}: cannot open shared object file: No such file or directory")
        return object()

    return load


@pytest.mark.parametrize(
    ("environ", "platforms"),
    [
        ({}, ()),
        ({"DISPLAY": ":0"}, ("xcb",)),
        ({"WAYLAND_DISPLAY": "wayland-0"}, ("wayland",)),
        ({"DISPLAY": ""}, ()),
        ({"QT_QPA_PLATFORM": "offscreen", "DISPLAY": ":0"}, ("offscreen",)),
        ({"QT_QPA_PLATFORM": "vnc:size=800x600"}, ("vnc",)),
        ({"QT_QPA_PLATFORM": "wayland-egl;xcb"}, ("wayland", "xcb")),
    ],
)
def test_the_platforms_are_those_that_the_surroundings_ask_for(environ, platforms):
    assert set(wanted_platforms(environ)) == set(platforms)


def test_drawing_off_screen_needs_no_display():
    check_window({"QT_QPA_PLATFORM": "offscreen"})


def test_no_display_says_how_to_get_one():
    with pytest.raises(DisplayError, match="neither DISPLAY nor WAYLAND_DISPLAY is set: start from a desktop session"):
        check_window({})


def test_a_display_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lacking())
    monkeypatch.setitem(preflight.DISPLAY_SERVERS, "xcb", ("DISPLAY", lambda: False))
    with pytest.raises(DisplayError, match="The display DISPLAY=':99' does not answer"):
        check_window({"DISPLAY": ":99"})


def test_one_platform_that_works_is_enough(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lacking())
    monkeypatch.setitem(preflight.DISPLAY_SERVERS, "wayland", ("WAYLAND_DISPLAY", lambda: False))
    monkeypatch.setitem(preflight.DISPLAY_SERVERS, "xcb", ("DISPLAY", lambda: True))
    check_window({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"})


def test_an_unknown_platform_is_named_with_the_ones_to_choose():
    with pytest.raises(DisplayError, match="QT_QPA_PLATFORM=cocoa: Qt has no such platform here"):
        check_window({"QT_QPA_PLATFORM": "cocoa"})


def test_a_missing_library_of_qt_itself_is_told_with_the_package(monkeypatch):
    def import_module(name: str) -> object:
        raise ImportError("libEGL.so.1: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(preflight.importlib, "import_module", import_module)
    monkeypatch.setattr(ctypes, "CDLL", lacking("libEGL.so.1", "libxkbcommon.so.0"))
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name == "apt-get" else None)
    with pytest.raises(DisplayError) as caught:
        check_window({"QT_QPA_PLATFORM": "offscreen"})
    assert str(caught.value) == (
        "Qt needs system libraries that are not installed: libEGL.so.1, libxkbcommon.so.0. "
        "Install them with: sudo apt install libegl1 libxkbcommon0"
    )


def test_a_missing_library_of_the_x11_plugin_is_told_before_qt_aborts(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lacking("libxcb-cursor.so.0"))
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name == "apt-get" else None)
    with pytest.raises(
        DisplayError, match=r"libxcb-cursor\.so\.0\. Install them with: sudo apt install libxcb-cursor0$"
    ):
        check_window({"DISPLAY": ":0"})


def test_another_failure_to_load_is_not_taken_for_a_missing_library(monkeypatch):
    def import_module(name: str) -> object:
        raise ImportError("libQt6Core.so.6: version `Qt_6.11' not found")

    monkeypatch.setattr(preflight.importlib, "import_module", import_module)
    with pytest.raises(ImportError, match="Qt_6"):
        check_window({"QT_QPA_PLATFORM": "offscreen"})


@pytest.mark.parametrize(
    ("manager", "advice"),
    [
        ("apt-get", "Install them with: sudo apt install libgl1 libglib2.0-0"),
        ("dnf", "Install them with: sudo dnf install libglvnd-glx glib2"),
        (None, "Install the packages of your distribution that bring them."),
    ],
)
def test_the_advice_is_in_the_words_of_the_distribution(monkeypatch, manager, advice):
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if name == manager else None)
    missing = ["libGL.so.1", "libglib-2.0.so.0", "libgthread-2.0.so.0"]
    assert install_advice(missing, preflight.GUI_LIBRARIES).endswith(advice)


def test_a_library_that_no_package_is_known_for_is_still_named(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert install_advice(["libodd.so.1"], preflight.GUI_LIBRARIES) == (
        "Qt needs system libraries that are not installed: libodd.so.1. "
        "Install the packages of your distribution that bring them."
    )


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf of binutils to look into Qt's libraries")
def test_every_library_that_qt_leaves_to_the_system_has_a_package():
    from PySide6.QtCore import QLibraryInfo

    plugins = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath), "platforms")
    libraries = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.LibrariesPath))
    known = preflight.GUI_LIBRARIES | preflight.PLATFORM_LIBRARIES["xcb"] | preflight.PLATFORM_LIBRARIES["wayland"]
    everywhere = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1", "ld-linux-x86-64.so.2"}
    files = [plugins / f"libq{platform}.so" for platform in ("xcb", "wayland", "offscreen")]
    files += [libraries / f"libQt6{name}.so.6" for name in ("Core", "Gui", "Widgets", "Svg", "DBus", "XcbQpa")]
    for file in files:
        dynamic = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
        needed = {line.split("[")[1].rstrip("]") for line in dynamic.splitlines() if "(NEEDED)" in line}
        own = {name for name in needed if name.startswith("libQt6") or (libraries / name).exists()}
        assert needed - own - everywhere <= known.keys(), file.name
