"""A sound as the spectrogram Whisper listens to: the power of each mel band, on a logarithmic scale.

Radford et al. 2022, section 2.2. Mel bands as in Slaney 1998, "Auditory Toolbox, version 2": linear to 1000 Hz, then
logarithmic, each of area 1. Shape letters: S samples, T frames, W samples of a window, R frequencies, F mel bands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core_model.errors import InputError
from core_model.keys import read_keys
from core_model.preprocess.wav import RATES, read_wav
from core_model.results import FloatArray, read_only
from core_model.wording import file_name

_MAX_WINDOW = 1 << 16
_MAX_VALUES = 1 << 27
"""Of all windows together, 1 GB; Whisper's have 1.2 million."""

_HIGHEST_HERTZ = 8000.0
_LINEAR_TO_HERTZ, _HERTZ_A_MEL = 1000.0, 200 / 3
_LINEAR_TO_MEL = _LINEAR_TO_HERTZ / _HERTZ_A_MEL
_LOG_STEP = np.log(6.4) / 27
"""27 mel above the linear part, frequencies are 6.4 times as high."""
_SMALLEST_POWER, _RANGE = 1e-10, 8.0


@dataclass(frozen=True, kw_only=True)
class SoundSettings:
    """A spectrogram of `n_features` mel bands from windows of `window` samples, one every `step` of `rate` a second.

    It always has `n_frames`: of a longer sound the beginning, of a shorter one with silence behind.
    """

    n_features: int
    n_frames: int
    rate: int = 16000
    window: int = 400
    step: int = 160

    def __post_init__(self) -> None:
        if self.rate not in RATES:
            raise InputError(f"sampling_rate is {self.rate}: expected {RATES.start} to {RATES.stop - 1}")
        if not 1 <= self.step <= self.window <= _MAX_WINDOW:
            raise InputError(f"n_fft is {self.window} and hop_length {self.step}: expected 1 <= hop_length <= n_fft")
        most = min(2 * self.n_frames * self.step - 1, _MAX_VALUES // self.n_frames)
        if self.window > most:
            raise InputError(f"n_fft is {self.window}: expected at most {most} for {self.n_frames} frames")

    @property
    def seconds(self) -> float:
        """How much of a sound goes in."""
        return self.n_frames * self.step / self.rate

    @property
    def summary(self) -> str:
        """The steps in words."""
        return (
            f"{self.seconds:g} s at {self.rate} Hz, {self.n_features} mel bands from windows of {self.window} samples "
            f"every {self.step}"
        )


@dataclass(frozen=True, kw_only=True)
class _Keys:
    """The keys of a WhisperFeatureExtractor that decide what is computed."""

    feature_size: int = 80
    sampling_rate: int = 16000
    hop_length: int = 160
    n_fft: int = 400


def stated_settings(document: Mapping[str, Any], n_features: int, n_frames: int, file: str) -> SoundSettings:
    """What a preprocessor_config.json asks for, for a model of so many mel bands and frames.

    InputError names a wrong key in `file`.
    """
    keys = read_keys({key: value for key, value in document.items() if value is not None}, _Keys, file, InputError)
    if keys.feature_size != n_features:
        raise InputError(f"feature_size is {keys.feature_size} in {file}: the model reads {n_features} mel bands")
    try:
        return SoundSettings(
            n_features=n_features, n_frames=n_frames, rate=keys.sampling_rate, window=keys.n_fft, step=keys.hop_length
        )
    except InputError as error:
        raise InputError(f"{file}: {error}") from error


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrogram:
    """Features [F, T], the seconds of them that are sound, not the silence behind it, and in words what was done."""

    features: FloatArray
    seconds: float
    notes: tuple[str, ...]


def read_sound(path: Path, settings: SoundSettings) -> Spectrogram:
    """The spectrogram of a WAV file. InputError says what is wrong with it."""
    sound, name = read_wav(path, settings.seconds), file_name(path)
    done = []
    if sound.seconds > settings.seconds:
        done.append(f"the first {settings.seconds:g} s of its {sound.seconds:.4g} s taken")
    elif sound.seconds < settings.seconds:
        done.append(f"silence put behind its {sound.seconds:.3g} s, up to {settings.seconds:g} s")
    if sound.n_channels > 1:
        done.append(f"mean of its {sound.n_channels} channels taken")
    if sound.rate != settings.rate:
        done.append(f"resampled from {sound.rate} to {settings.rate} Hz by its Fourier transform")
    wave_S = resampled(sound.wave, sound.rate, settings.rate)
    notes = (f"{name}: {', '.join(done)}",) if done else ()
    seconds = min(sound.seconds, settings.seconds)
    return Spectrogram(features=spectrogram(wave_S, settings), seconds=seconds, notes=notes)


def resampled(wave_S: FloatArray, rate: int, to: int) -> FloatArray:
    """The same sound at another rate: frequencies that both rates have stay as they are, others are left out."""
    if rate == to:
        return wave_S
    common = gcd(rate, to)
    n_blocks = -(-len(wave_S) // (rate // common))
    spectrum = np.fft.rfft(wave_S, n_blocks * (rate // common))
    n_to = n_blocks * (to // common)
    n_kept = -(-len(wave_S) * to // rate)
    return (np.fft.irfft(spectrum, n_to)[:n_kept] * (to / rate)).astype(np.float32)


def spectrogram(wave_S: FloatArray, settings: SoundSettings) -> FloatArray:
    """log10 of the power [F, T] of each mel band, at least the largest less 8, plus 4, divided by 4."""
    n_samples, window = settings.n_frames * settings.step, settings.window
    wave_S = np.pad(wave_S[:n_samples], (0, max(n_samples - len(wave_S), 0)))
    windows_TW = np.lib.stride_tricks.sliding_window_view(np.pad(wave_S, window // 2, mode="reflect"), window)
    hann_W = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window) / window)
    power_TR = np.abs(np.fft.rfft(windows_TW[:: settings.step][: settings.n_frames] * hann_W)) ** 2
    bands_FT = mel_filters(settings) @ power_TR.T
    log_FT = np.log10(np.maximum(bands_FT, _SMALLEST_POWER))
    return read_only(((np.maximum(log_FT, log_FT.max() - _RANGE) + 4) / 4).astype(np.float32))


def mel_filters(settings: SoundSettings) -> npt.NDArray[np.float64]:
    """How much of each frequency goes into each band [F, R]: triangles of area 1, at equal distances in mel."""
    frequencies_R = np.linspace(0, settings.rate // 2, 1 + settings.window // 2)
    edges = _hertz(np.linspace(0, _mel(_HIGHEST_HERTZ), settings.n_features + 2))
    low_F1, middle_F1, high_F1 = (edges[i : i + settings.n_features, None] for i in range(3))
    rising_FR = (frequencies_R - low_F1) / (middle_F1 - low_F1)
    falling_FR = (high_F1 - frequencies_R) / (high_F1 - middle_F1)
    return np.maximum(0, np.minimum(rising_FR, falling_FR)) * 2 / (high_F1 - low_F1)


def _mel(hertz: float) -> float:
    """Of a frequency above the linear part."""
    return _LINEAR_TO_MEL + np.log(hertz / _LINEAR_TO_HERTZ) / _LOG_STEP


def _hertz(mel: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    linear = mel * _HERTZ_A_MEL
    return np.where(mel < _LINEAR_TO_MEL, linear, _LINEAR_TO_HERTZ * np.exp(_LOG_STEP * (mel - _LINEAR_TO_MEL)))
