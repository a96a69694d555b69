"""The training loop: a generator of one event an update. It never prints and does not know who listens."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import torch
from torch.nn import functional

from core_model.cancel import CancelToken
from core_model.device import resolve_device
from core_model.errors import TrainingError
from core_model.nn.initialization import initialize
from core_model.nn.transformer import Transformer
from core_model.training.architecture import model_config
from core_model.training.control import TrainControl
from core_model.training.data import IGNORED, TrainingData
from core_model.training.events import TrainEvent
from core_model.training.memory import require_memory
from core_model.training.precision import MixedPrecision, NotFiniteError, Update, first_not_finite
from core_model.training.settings import TrainingSettings
from core_model.training.tasks import TASKS
from core_model.training.threads import ThreadTrial
from core_model.training.watch import DeviceBatch, accuracy, blame, probe_attention, to_device


class Training:
    """A model, the examples it learns from and its optimizer. Made and run on one thread, off the UI thread."""

    def __init__(self, settings: TrainingSettings, data: TrainingData | None = None) -> None:
        """`data` stands in for the task's examples. ConfigError or TrainingError where settings cannot be met."""
        self.settings = settings
        self.data = data or TASKS[settings.task].make_data(settings.length, settings.seed, settings.text)
        self._device = resolve_device(settings.device)
        self._threads = ThreadTrial(settings.threads, self._device)
        self._precision = MixedPrecision(settings.precision, self._device)
        config = model_config(
            settings,
            vocab_size=self.data.tokenizer.vocab_size,
            max_length=self.data.max_length,
            special=self.data.special,
        )
        require_memory(settings, config, self.data.max_length, self._device)
        self.model = Transformer(config)
        initialize(self.model, settings.initialization, torch.Generator().manual_seed(settings.seed))
        self.model.to(self._device)
        self._optimizer = _adamw(self.model, settings)
        self._held_out = to_device(self.data.held_out, self._device)
        self._has_failed = False

    @property
    def n_threads(self) -> int:
        """Threads in use; settled once the first updates were timed."""
        return self._threads.chosen

    @property
    def is_sound(self) -> bool:
        """Whether the weights are finite and gave no loss or prediction that is not: only such are worth keeping."""
        return not self._has_failed and first_not_finite(self.model.named_parameters()) is None

    def run(self, *, cancel: CancelToken, control: TrainControl) -> Iterator[TrainEvent]:
        """Yield an event after every update, until all are done or `control` stops them.

        Weights that are to be saved are measured first. Raises Cancelled, and TrainingError naming step and tensor at
        the first number that is not finite; `is_sound` then tells whether the weights are worth keeping.
        """
        settings, rate = self.settings, self.settings.learning_rate
        generator = np.random.default_rng(settings.seed + 1)  # not the stream that drew the held-out examples
        threads_before = torch.get_num_threads()
        torch.manual_seed(settings.seed)  # dropout
        self.model.train()
        seconds = 0.0
        try:
            for step in range(1, settings.steps + 1):
                if not control.admit(cancel):
                    return
                self._threads.before_update()
                start = time.perf_counter()
                batch = self.data.batch(generator, settings.batch)
                loss, update = self._update(step, to_device(batch, self._device), rate(step))
                took = time.perf_counter() - start
                self._threads.after_update(took)
                seconds += took
                watched = step == 1 or step % settings.watch_every == 0 or step == settings.steps
                measured = watched or step % settings.save_every == 0
                yield TrainEvent(
                    step=step,
                    n_steps=settings.steps,
                    loss=loss,
                    learning_rate=rate(step),
                    grad_norm=update.grad_norm,
                    loss_scale=update.loss_scale,
                    tokens_per_second=batch.n_tokens / took,
                    seconds=seconds,
                    accuracy=self._accuracy(step) if measured else None,
                    probe=probe_attention(self.model, self.data.probe, self.data.tokenizer, step) if watched else None,
                )
        finally:
            torch.set_num_threads(threads_before)

    def _update(self, step: int, batch: DeviceBatch, learning_rate: float) -> tuple[float, Update]:
        """One update: the loss before it, and what it did."""
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        try:
            with self._precision.autocast():
                logits = batch.logits(self.model)
            loss = functional.cross_entropy(logits.float().flatten(0, 1), batch.targets.flatten(), ignore_index=IGNORED)
            if not loss.isfinite():
                self._has_failed = True
                raise blame(self.model, batch, self._precision)
            return loss.item(), self._precision.update(loss, self._optimizer, self.model, clip=self.settings.clip)
        except NotFiniteError as error:
            raise _stopped(f"at step {step}", error) from error

    def _accuracy(self, step: int) -> float:
        """The held-out accuracy after that step; TrainingError where a weight or a prediction is not finite."""
        measured = accuracy(self.model, self._held_out, self._precision)
        if measured is not None and self.is_sound:
            return measured
        self._has_failed = True
        raise _stopped(f"after step {step}", blame(self.model, self._held_out, self._precision))


def _stopped(when: str, error: NotFiniteError) -> TrainingError:
    return TrainingError(
        f"Training stopped {when}: {error.tensor} is {error.value}. "
        "Try a lower peak learning rate, a longer warmup, or precision fp32."
    )


def _adamw(model: Transformer, settings: TrainingSettings) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019); vectors (biases, gains) do not decay."""
    matrices = [parameter for parameter in model.parameters() if parameter.dim() >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.dim() < 2]
    groups = [
        {"params": matrices, "weight_decay": settings.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=0.0, betas=settings.betas, eps=settings.eps, fused=True)
