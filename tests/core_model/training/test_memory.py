from dataclasses import replace

import pytest
import torch

from core_model.cancel import CancelToken
from core_model.errors import ConfigError, TrainingError
from core_model.training import memory
from core_model.training.control import TrainControl
from core_model.training.loop import Training
from core_model.training.memory import activation_bytes, state_bytes
from core_model.training.settings import TrainingSettings

SMALL = TrainingSettings(
    task="copy", d_model=16, n_heads=2, n_layers=1, d_hidden=32, length=4, batch=8, steps=1, warmup=1
)


def test_state_is_four_floats_a_parameter() -> None:
    training = Training(SMALL)
    assert state_bytes(training.model.config) == 16 * sum(weight.numel() for weight in training.model.parameters())


def test_activations_are_no_less_than_estimated() -> None:
    """Held against what autograd saves: a bound that is too high would refuse trainings that fit."""
    training = Training(replace(SMALL, batch=64, d_model=64, d_hidden=256, n_layers=2, threads=1))
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if not isinstance(tensor, torch.nn.Parameter):
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        next(training.run(cancel=CancelToken(), control=TrainControl()))
    estimate = activation_bytes(training.settings, training.model.config, training.data.max_length)
    assert 0.3 * sum(kept.values()) < estimate <= sum(kept.values())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"d_model": 4096, "d_hidden": 65536, "n_layers": 64}, "choose less layers, width or feed-forward"),
        ({"batch": 65536, "length": 8192}, "choose less batch or length"),
    ],
)
def test_a_training_that_cannot_fit_is_refused_before_anything_is_made(monkeypatch, changes, said) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda device: 16 << 30)
    with pytest.raises(TrainingError, match=rf"cpu has 16\.0 GiB free: {said}"):
        Training(replace(SMALL, **changes))


def test_more_threads_than_cores_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"threads is 100000: \d+ cores may be used here"):
        Training(replace(SMALL, threads=100_000))
