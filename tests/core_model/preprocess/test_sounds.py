"""Whisper's spectrograms, against the feature extractor of transformers, and resampling, against sines."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers

from core_model.errors import InputError
from core_model.preprocess.sounds import SoundSettings, read_sound, resampled, spectrogram, stated_settings

LIBRARY: Any = transformers
FILE = "preprocessor_config.json"


def sweep(seconds: float, rate: int) -> np.ndarray:
    """A tone from 100 Hz upwards under a little noise."""
    time = np.arange(round(seconds * rate)) / rate
    noise = np.random.default_rng(0).normal(size=len(time))
    return (0.4 * np.sin(2 * np.pi * (100 + 800 * time) * time) + 0.01 * noise).astype(np.float32)


def write(path: Path, values: np.ndarray, rate: int) -> Path:
    """A file of 16 bits; `values` have a column a channel where there are several."""
    with wave.open(str(path), "wb") as file:
        file.setparams((values.shape[1] if values.ndim > 1 else 1, 2, rate, 0, "NONE", ""))
        file.writeframes(np.rint(values * 32768).astype("<i2").tobytes())
    return path


@pytest.mark.parametrize("seconds", [0.3, 2, 3.7])
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"feature_size": 128, "chunk_length": 3},
        {"feature_size": 20, "hop_length": 100, "n_fft": 512, "sampling_rate": 22050, "chunk_length": 2},
    ],
    ids=str,
)
def test_the_spectrogram_is_the_librarys(keys: dict[str, Any], seconds: float) -> None:
    reference = LIBRARY.WhisperFeatureExtractor(**keys)
    sound = sweep(seconds, reference.sampling_rate)
    want = reference(sound, sampling_rate=reference.sampling_rate, return_tensors="np")["input_features"][0]
    settings = stated_settings(reference.to_dict(), reference.feature_size, reference.nb_max_frames, FILE)
    got = spectrogram(sound, settings)
    assert got.shape == want.shape and got.dtype == np.float32
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4)


def test_silence_is_the_lowest_level_everywhere() -> None:
    """log10 of 1e-10 is -10; plus 4, divided by 4."""
    settings = SoundSettings(n_features=8, n_frames=20)
    np.testing.assert_array_equal(spectrogram(np.zeros(100, np.float32), settings), np.full((8, 20), -1.5, np.float32))


@pytest.mark.parametrize(("rate", "to"), [(44100, 16000), (48000, 16000), (22050, 16000), (8000, 16000), (11025, 8000)])
def test_a_tone_sounds_the_same_at_another_rate(rate: int, to: int) -> None:
    def tone(at: int) -> np.ndarray:
        time = np.arange(at) / at
        return (np.sin(2 * np.pi * 440 * time) * np.sin(np.pi * time) ** 2).astype(np.float32)

    np.testing.assert_allclose(resampled(tone(rate), rate, to), tone(to), rtol=0, atol=1e-5)


def test_a_tone_that_the_new_rate_cannot_carry_is_left_out_not_folded() -> None:
    """12 kHz at 44.1 kHz would come back as 4 kHz at 16 kHz if every n-th value were taken."""
    high = np.sin(2 * np.pi * 12000 * np.arange(44100) / 44100).astype(np.float32)
    assert np.abs(resampled(high, 44100, 16000)).max() < 1e-3


@pytest.mark.parametrize("n", [1, 440, 441, 442, 1000])
def test_a_sound_keeps_its_length_in_seconds(n: int) -> None:
    assert len(resampled(np.zeros(n, np.float32), 44100, 16000)) == -(-n * 16000 // 44100)


def test_of_a_long_sound_the_beginning_is_read_and_that_is_said(tmp_path: Path) -> None:
    settings = SoundSettings(n_features=80, n_frames=100)
    sound = sweep(2.5, 16000)
    read = read_sound(write(tmp_path / "long.wav", sound, 16000), settings)
    assert read.notes == ("long.wav: the first 1 s of its 2.5 s taken",)
    assert read.seconds == 1
    np.testing.assert_allclose(read.features, spectrogram(sound[:16000], settings), rtol=0, atol=0.02)


def test_all_that_was_done_to_a_sound_is_said(tmp_path: Path) -> None:
    settings = SoundSettings(n_features=80, n_frames=3000)
    stereo = np.stack([sweep(0.5, 22050), np.zeros(11025, np.float32)], axis=1)
    read = read_sound(write(tmp_path / "short.wav", stereo, 22050), settings)
    assert read.notes == (
        "short.wav: silence put behind its 0.5 s, up to 30 s, mean of its 2 channels taken, "
        "resampled from 22050 to 16000 Hz by its Fourier transform",
    )
    assert (read.features.shape, read.seconds) == ((80, 3000), 0.5)


def test_a_sound_that_fits_is_taken_as_it_is(tmp_path: Path) -> None:
    read = read_sound(write(tmp_path / "fits.wav", sweep(1, 16000), 16000), SoundSettings(n_features=80, n_frames=100))
    assert (read.notes, read.seconds) == ((), 1)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"feature_size": 128}, "feature_size is 128 in preprocessor_config.json: the model reads 80 mel bands"),
        ({"sampling_rate": 0}, "preprocessor_config.json: sampling_rate is 0: expected 1000 to 1000000"),
        ({"hop_length": 500}, "n_fft is 400 and hop_length 500: expected 1 <= hop_length <= n_fft"),
        ({"n_fft": 10**9, "hop_length": 1}, "n_fft is 1000000000"),
        ({"n_fft": 60000}, "preprocessor_config.json: n_fft is 60000: expected at most 44739 for 3000 frames"),
        ({"n_fft": "long"}, "n_fft is .long. in preprocessor_config.json: expected int"),
    ],
)
def test_a_wrong_key_is_named_with_its_value(document: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        stated_settings(document, 80, 3000, FILE)
