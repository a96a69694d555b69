"""The settings file: read once, written whole and atomically."""

from __future__ import annotations

from pathlib import Path

import msgspec
import platformdirs

from core_model.disk import whole_file
from explorer.settings.schema import Settings

APPLICATION = "transformer-explorer"


def runs_path() -> Path:
    """Where training runs are kept unless the person chooses another folder."""
    return Path(platformdirs.user_data_dir(APPLICATION, appauthor=False)) / "runs"


def settings_path() -> Path:
    """Where this system keeps an application's settings (XDG_CONFIG_HOME respected)."""
    return Path(platformdirs.user_config_dir(APPLICATION, appauthor=False)) / "settings.json"


class SettingsStore:
    """Reads and writes one settings file. A file that cannot be understood is set aside, never overwritten."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def load(self) -> tuple[Settings, str | None]:
        """The settings, and a sentence for the person when the file was damaged or unreadable."""
        try:
            raw = self._path.read_bytes()
        except FileNotFoundError:
            return Settings(), None
        except OSError as error:
            return Settings(), f"The settings in {self._path} cannot be read ({error.strerror}); defaults are used."
        try:
            return msgspec.json.decode(raw, type=Settings), None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            return Settings(), self._set_aside(str(error))

    def save(self, settings: Settings) -> None:
        """Write the file, whole or not at all. Raises OSError."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(self._path) as file:
            file.write(msgspec.json.format(msgspec.json.encode(settings), indent=2))

    def _set_aside(self, reason: str) -> str:
        kept = next(
            place
            for number in range(1, 1000)
            if not (place := self._path.with_suffix(f".damaged-{number}.json")).exists()
        )
        try:
            self._path.rename(kept)
        except OSError as error:
            return f"The settings in {self._path} are damaged ({reason}) and cannot be moved ({error.strerror})."
        return f"The settings were damaged ({reason}). They are kept as {kept}; defaults are used."
