import math
import threading
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
import torch

from core_model.cancel import CancelToken
from core_model.errors import Cancelled, ConfigError, TrainingError
from core_model.trace import Inputs, run_trace
from core_model.training.control import TrainControl
from core_model.training.data import IGNORED
from core_model.training.loop import Training
from core_model.training.settings import POSITIONS, TrainingSettings
from core_model.training.tasks import TASKS
from core_model.training.watch import accuracy
from tests.core_model.watched_control import WatchedControl

SMALL = TrainingSettings(
    task="reverse",
    d_model=32,
    n_heads=2,
    n_layers=1,
    d_hidden=64,
    length=4,
    batch=32,
    steps=100,
    warmup=2,
    peak_learning_rate=1e-2,
    threads=1,
    watch_every=50,
)


def run(settings: TrainingSettings = SMALL, control: TrainControl | None = None) -> list[Any]:
    return list(Training(settings).run(cancel=CancelToken(), control=control or TrainControl()))


def test_reverse_is_learned_within_150_steps():
    events = run(replace(SMALL, steps=150, warmup=20))
    assert events[-1].loss < 0.3 * events[0].loss
    assert events[-1].accuracy > 0.8 > 0.2 > events[0].accuracy


def test_first_loss_is_the_cross_entropy_of_the_first_batch():
    training: Any = Training(SMALL)
    batch: Any = TASKS["reverse"].make_data(4, 0, None).batch(np.random.default_rng(1), 32)
    model = training.model
    logits = model(
        *map(torch.from_numpy, (batch.ids_BN, batch.decoder_ids_BM)), key_mask_BN=torch.from_numpy(batch.key_mask_BN)
    )
    probability = logits.softmax(-1).detach().numpy()
    asked = np.argwhere(batch.targets != IGNORED)
    expected = -np.mean([math.log(probability[b, m, batch.targets[b, m]]) for b, m in asked])
    first = next(training.run(cancel=CancelToken(), control=TrainControl()))
    assert first.loss == pytest.approx(expected, rel=1e-5)


def test_same_settings_give_the_same_losses_to_the_bit():
    short = replace(SMALL, steps=12, dropout=0.1)
    first, second = run(short), run(short)
    assert [event.loss for event in first] == [event.loss for event in second]
    assert [event.grad_norm for event in first] == [event.grad_norm for event in second]


def test_another_seed_gives_other_losses():
    short = replace(SMALL, steps=2)
    assert run(short)[0].loss != run(replace(short, seed=1))[0].loss


def test_watching_changes_nothing_in_what_is_learned():
    short = replace(SMALL, steps=12, dropout=0.1)
    often, seldom = run(replace(short, watch_every=1)), run(replace(short, watch_every=12))
    assert [event.loss for event in often] == [event.loss for event in seldom]


def test_learning_rate_of_every_event_is_the_schedule_at_its_step():
    events = run(replace(SMALL, steps=6, warmup=3, schedule="linear", peak_learning_rate=1.0))
    assert [event.learning_rate for event in events] == pytest.approx([1 / 4, 2 / 4, 3 / 4, 1, 2 / 3, 1 / 3])
    assert [event.step for event in events] == [1, 2, 3, 4, 5, 6]


def test_stop_ends_within_one_step():
    control = TrainControl()
    events = Training(SMALL).run(cancel=CancelToken(), control=control)
    assert [event.step for event in islice(events, 5)][-1] == 5
    control.stop()
    assert list(events) == []


def test_pause_holds_the_training_and_resume_goes_on_where_it_was():
    control, steps = WatchedControl(), []
    control.step()

    def work():
        for event in Training(replace(SMALL, steps=4)).run(cancel=CancelToken(), control=control):
            steps.append(event.step)

    thread = threading.Thread(target=work)
    thread.start()
    while not control.holding:
        thread.join(0.001)
    held = list(steps)
    control.resume()
    thread.join(30)
    assert held == [1]
    assert steps == [1, 2, 3, 4]


def test_cancel_is_heeded_at_the_next_step():
    cancel = CancelToken()
    events = Training(SMALL).run(cancel=cancel, control=TrainControl())
    next(events)
    cancel.cancel()
    with pytest.raises(Cancelled):
        next(events)


@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_probe_is_what_run_trace_computes_of_the_same_model(task):
    training: Any = Training(replace(SMALL, task=task, steps=2, watch_every=1))
    *_, last = training.run(cancel=CancelToken(), control=TrainControl())
    probe = training.data.probe
    trace = run_trace(training.model, Inputs(ids=probe.ids, decoder_ids=probe.decoder_ids))
    assert tuple(last.probe.sites) == trace.sites
    for site, seen in last.probe.sites.items():
        n_layers, n_heads, n_queries, n_keys = trace.shape(site)
        assert seen.weights.shape == (n_layers, n_heads, n_queries, n_keys)
        is_causal = site == "decoder.self"
        assert (seen.masked == (np.triu(np.ones((n_queries, n_keys), bool), 1) if is_causal else False)).all()
        assert (len(seen.query_texts), len(seen.key_texts)) == (n_queries, n_keys)
        for layer in range(n_layers):
            for head in range(n_heads):
                np.testing.assert_array_equal(seen.weights[layer, head], trace.attention(site, layer, head))


def test_accuracy_is_measured_of_all_weights_that_are_saved():
    events = run(replace(SMALL, steps=7, watch_every=5, save_every=3))
    assert [event.step for event in events if event.accuracy is not None] == [1, 3, 5, 6, 7]


def test_predictions_that_are_not_finite_have_no_accuracy():
    training: Any = Training(SMALL)
    held_out, precision = training._held_out, training._precision
    assert accuracy(training.model, held_out, precision) is not None
    with torch.no_grad():
        training.model.decoder.final_norm.bias[0] = torch.nan
    assert accuracy(training.model, held_out, precision) is None


def test_probe_is_seen_at_the_first_and_last_step_and_every_watch_between():
    events = run(replace(SMALL, steps=7, watch_every=3))
    assert [event.step for event in events if event.probe] == [1, 3, 6, 7]


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_every_kind_of_position_trains_with_either_norm_order(positions, norm):
    events = run(replace(SMALL, steps=40, positions=positions, norm=norm, peak_learning_rate=3e-3))
    assert np.mean([event.loss for event in events[-5:]]) < events[0].loss


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_follows_float32(precision):
    short = replace(SMALL, steps=5)
    exact, mixed = run(short), run(replace(short, precision=precision))
    assert [event.loss for event in mixed] == pytest.approx([event.loss for event in exact], rel=0.02)
    assert [event.loss_scale for event in mixed] == [2.0**16 if precision == "fp16" else None] * 5


def test_first_not_finite_number_stops_the_run_naming_step_and_tensor():
    training: Any = Training(SMALL)
    events = training.run(cancel=CancelToken(), control=TrainControl())
    next(events)
    with torch.no_grad():
        training.model.decoder.layers["0"].attention.output.bias[3] = torch.nan
    with pytest.raises(TrainingError, match=r"step 2: decoder\.layers\.0\.attention\.output\.bias is nan"):
        next(events)


def test_an_activation_that_overflows_is_named_by_its_site():
    training: Any = Training(SMALL)
    with torch.no_grad():
        training.model.encoder.layers["0"].feed_forward.output.weight.fill_(3e38)
    with pytest.raises(TrainingError, match=r"step 1: encoder\.0\.feed_forward_output is"):
        next(training.run(cancel=CancelToken(), control=TrainControl()))


def test_a_device_this_machine_lacks_is_refused_naming_what_there_is():
    with pytest.raises(ConfigError, match=r"device is 'cuda:9'.*cpu"):
        Training(replace(SMALL, device="cuda:9"))


def test_torch_threads_are_as_before_when_the_training_ends():
    before = torch.get_num_threads()
    run(replace(SMALL, steps=2, threads=before + 1))
    assert torch.get_num_threads() == before
