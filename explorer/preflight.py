"""Can Qt show a window here? Asked before Qt is started, because Qt aborts the process instead of saying no.

On Linux three things go wrong on machines of real people: there is no display, a system library that Qt links to is not
installed, or the display that the environment names does not answer. Each becomes one sentence with the next step.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from core_model.errors import CoreError

NEXT_STEP = (
    "start from a desktop session or through xvfb-run, "
    "or use a command that needs no window (inspect, attention, train, screenshot)."
)

# System libraries that Qt's own wheels leave to the distribution: soname -> (Debian package, Fedora package).
GUI_LIBRARIES = {
    "libEGL.so.1": ("libegl1", "libglvnd-egl"),
    "libGL.so.1": ("libgl1", "libglvnd-glx"),
    "libX11.so.6": ("libx11-6", "libX11"),
    "libdbus-1.so.3": ("libdbus-1-3", "dbus-libs"),
    "libfontconfig.so.1": ("libfontconfig1", "fontconfig"),
    "libfreetype.so.6": ("libfreetype6", "freetype"),
    "libglib-2.0.so.0": ("libglib2.0-0", "glib2"),
    "libgthread-2.0.so.0": ("libglib2.0-0", "glib2"),
    "libxkbcommon.so.0": ("libxkbcommon0", "libxkbcommon"),
    "libzstd.so.1": ("libzstd1", "libzstd"),
}
PLATFORM_LIBRARIES = {
    "xcb": {
        "libX11-xcb.so.1": ("libx11-xcb1", "libX11-xcb"),
        "libxcb-cursor.so.0": ("libxcb-cursor0", "xcb-util-cursor"),
        "libxcb-icccm.so.4": ("libxcb-icccm4", "xcb-util-wm"),
        "libxcb-image.so.0": ("libxcb-image0", "xcb-util-image"),
        "libxcb-keysyms.so.1": ("libxcb-keysyms1", "xcb-util-keysyms"),
        "libxcb-randr.so.0": ("libxcb-randr0", "libxcb"),
        "libxcb-render-util.so.0": ("libxcb-render-util0", "xcb-util-renderutil"),
        "libxcb-render.so.0": ("libxcb-render0", "libxcb"),
        "libxcb-shape.so.0": ("libxcb-shape0", "libxcb"),
        "libxcb-shm.so.0": ("libxcb-shm0", "libxcb"),
        "libxcb-sync.so.1": ("libxcb-sync1", "libxcb"),
        "libxcb-util.so.1": ("libxcb-util1", "xcb-util"),
        "libxcb-xfixes.so.0": ("libxcb-xfixes0", "libxcb"),
        "libxcb-xkb.so.1": ("libxcb-xkb1", "libxcb"),
        "libxcb.so.1": ("libxcb1", "libxcb"),
        "libxkbcommon-x11.so.0": ("libxkbcommon-x11-0", "libxkbcommon-x11"),
    },
    "wayland": {
        "libwayland-client.so.0": ("libwayland-client0", "libwayland-client"),
        "libwayland-cursor.so.0": ("libwayland-cursor0", "libwayland-cursor"),
    },
}


class DisplayError(CoreError):
    """No window can be shown on this machine as it is."""


def check_window(environ: Mapping[str, str] = os.environ) -> None:
    """Return when Qt can open a window with the platform that `environ` asks for; raise `DisplayError` when it cannot.

    Qt tries its platforms in turn, so one that works is enough. Elsewhere than on Linux Qt brings all it needs.
    """
    if not sys.platform.startswith("linux"):
        return
    platforms = wanted_platforms(environ)
    if not platforms:
        raise DisplayError(f"There is no display, neither DISPLAY nor WAYLAND_DISPLAY is set: {NEXT_STEP}")
    _demand(lambda: importlib.import_module("PySide6.QtWidgets"), GUI_LIBRARIES)
    problems: list[DisplayError] = []
    for platform in platforms:
        try:
            _check_platform(platform, environ)
        except DisplayError as problem:
            problems.append(problem)
        else:
            return
    raise problems[0]


def wanted_platforms(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The names of Qt's platform plugins that Qt would try in this environment, in no particular order."""
    asked = environ.get("QT_QPA_PLATFORM", "")
    if asked:
        return tuple(entry.partition(":")[0].partition("-")[0] for entry in asked.split(";"))
    return tuple(platform for platform, (variable, _answers) in DISPLAY_SERVERS.items() if environ.get(variable))


def _check_platform(platform: str, environ: Mapping[str, str]) -> None:
    """Raise `DisplayError` when the platform's plugin does not load or the display it needs does not answer."""
    from PySide6.QtCore import QLibraryInfo  # only now: QtCore itself may lack a library, which `check_window` reports

    plugins = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath))
    plugin = plugins / "platforms" / f"libq{platform}.so"
    if not plugin.exists():
        raise DisplayError(
            f"QT_QPA_PLATFORM={platform}: Qt has no such platform here; unset it or choose xcb, wayland, offscreen."
        )
    _demand(lambda: ctypes.CDLL(str(plugin)), GUI_LIBRARIES | PLATFORM_LIBRARIES.get(platform, {}))
    if platform in DISPLAY_SERVERS:
        variable, answers = DISPLAY_SERVERS[platform]
        if not answers():
            raise DisplayError(f"The display {variable}={environ.get(variable, '')!r} does not answer: {NEXT_STEP}")


def _demand(load: Callable[[], object], libraries: Mapping[str, tuple[str, str]]) -> None:
    """Call `load`; when a shared library is missing, say which packages bring it and the others still missing."""
    try:
        load()
    except (ImportError, OSError) as error:
        first, colon, reason = str(error).partition(": ")
        if not colon or "cannot open shared object file" not in reason:
            raise
        missing = dict.fromkeys([first, *(name for name in libraries if not _loads(name))])
        raise DisplayError(install_advice(missing, libraries)) from error


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def install_advice(missing: Iterable[str], libraries: Mapping[str, tuple[str, str]]) -> str:
    """One sentence: the shared libraries that are missing and the command of this distribution that installs them."""
    missing = list(missing)
    text = f"Qt needs system libraries that are not installed: {', '.join(missing)}. "
    for column, (manager, command) in enumerate((("apt-get", "sudo apt install"), ("dnf", "sudo dnf install"))):
        packages = dict.fromkeys(libraries[name][column] for name in missing if name in libraries)
        if shutil.which(manager) and packages:
            return text + f"Install them with: {command} {' '.join(packages)}"
    return text + "Install the packages of your distribution that bring them."


def _x11_answers() -> bool:
    """Whether the X server that DISPLAY names accepts this user."""
    xcb = ctypes.CDLL("libxcb.so.1")
    xcb.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(xcb.xcb_connect(None, None))
    refused = xcb.xcb_connection_has_error(connection)
    xcb.xcb_disconnect(connection)
    return not refused


def _wayland_answers() -> bool:
    """Whether the compositor that WAYLAND_DISPLAY names accepts this user."""
    wayland = ctypes.CDLL("libwayland-client.so.0")
    wayland.wl_display_connect.restype = ctypes.c_void_p
    connection = wayland.wl_display_connect(None)
    if not connection:
        return False
    wayland.wl_display_disconnect(ctypes.c_void_p(connection))
    return True


# What a platform must reach: platform -> (the variable that names it, does it answer).
DISPLAY_SERVERS = {"xcb": ("DISPLAY", _x11_answers), "wayland": ("WAYLAND_DISPLAY", _wayland_answers)}
