"""Rebuild the bundled sample models from our own texts: `python -m resources.build_samples`.

Trains with core_model.training alone, some ten minutes a model on one core, measures the heads worth seeing, and writes
resources/samples with its manifest. Heads and figures in the manifest are what was measured, none is filled in by hand;
`--measure` writes it anew for the models that are there.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from core_model.analysis.head_statistics import head_statistics
from core_model.analysis.induction import induction_scores
from core_model.cancel import CancelToken
from core_model.checkpoint import Checkpoint, open_checkpoint
from core_model.checkpoint.writing import write_json
from core_model.results import FloatArray
from core_model.tokenize.library import LibraryTokenizer, load_tokenizer_json
from core_model.trace import Trace, run_trace
from core_model.training.control import TrainControl
from core_model.training.data import IGNORED, Batch, Ids, TrainingData
from core_model.training.runs import Run
from core_model.training.settings import TrainingSettings
from core_model.training.tasks import TASKS
from core_model.training.text_data import TextData

TEXTS = Path("resources/texts")
SAMPLES = Path("resources/samples")
VOCAB_SIZE = 768
SHORTEST_REPEAT = 6
"""Tokens of the shortest sequence that is repeated."""

LANGUAGE_MODEL = TrainingSettings(
    task="language_model",
    text=TEXTS,
    d_model=96,
    n_layers=2,
    n_heads=4,
    d_hidden=384,
    positions="rotary",
    steps=3000,
    batch=32,
    length=64,
    schedule="cosine",
    warmup=150,
    peak_learning_rate=3e-3,
    weight_decay=0.01,
    threads=1,
    watch_every=100,
)
REVERSAL = TrainingSettings(
    task="reverse",
    d_model=64,
    n_layers=2,
    n_heads=4,
    d_hidden=256,
    steps=3000,
    batch=64,
    length=16,
    schedule="cosine",
    warmup=300,
    peak_learning_rate=2e-3,
    threads=1,
    watch_every=100,
)
SENTENCE = "The keeper wound the clock and lit the lamp, and in the evening the keeper wound the clock and lit the lamp"
LETTERS = "transformer"


class TextAndRepeats(TextData):
    """An eighth of a batch are windows of the text; the rest are random tokens, or pieces of the text, read repeatedly.

    Only an induction head predicts random tokens; the pieces keep it at work on words, where memory would do as well.
    """

    def batch(self, generator: np.random.Generator, size: int) -> Batch:
        """Windows first, then repeats; of a repeat, only what has been seen before is asked."""
        windows = super().batch(generator, size // 8)
        repeats = [self._repeat(generator, of_text=number % 2 == 0) for number in range(size - size // 8)]
        return Batch(
            ids_BN=np.concatenate([windows.ids_BN, [ids for ids, _ in repeats]]),
            targets=np.concatenate([windows.targets, [targets for _, targets in repeats]]),
        )

    def _repeat(self, generator: np.random.Generator, *, of_text: bool) -> tuple[Ids, Ids]:
        period = int(generator.integers(SHORTEST_REPEAT, self.max_length // 2 + 1))
        if of_text:
            once = super().batch(generator, 1).ids_BN[0, :period]
        else:
            once = generator.integers(0, self.tokenizer.vocab_size, period)
        tokens = np.resize(once, self.max_length + 1)
        targets = tokens[1:].copy()
        targets[: period - 1] = IGNORED
        return tokens[:-1], targets


def main() -> None:
    """Train both models, measure them, and write the manifest."""
    parser = argparse.ArgumentParser(description="Rebuild the bundled sample models.")
    parser.add_argument("--measure", action="store_true", help="keep the models, write their manifest anew")
    language_model, reversal = SAMPLES / "tiny-language-model", SAMPLES / "tiny-reversal"
    if not parser.parse_args().measure:
        train(LANGUAGE_MODEL, language_model, language_data())
        train(REVERSAL, reversal)
    entries = [*language_model_entries(language_model), *reversal_entries(reversal)]
    write_json(SAMPLES / "manifest.json", {"samples": entries}, indent=2)


def language_data() -> TextAndRepeats:
    """Our texts, as the language model reads them."""
    text = "\n\n".join(path.read_text(encoding="utf-8") for path in sorted(TEXTS.glob("*.txt")))
    tokenizer = byte_pair_tokenizer(text)
    ids = np.array(tokenizer.encode(text).ids)
    return TextAndRepeats(ids, tokenizer, length=LANGUAGE_MODEL.length, name="the texts")


def language_model_entries(folder: Path) -> list[dict[str, object]]:
    """The decoder's previous-token head and its induction head."""
    with open_checkpoint(folder) as checkpoint:
        inputs = checkpoint.encode(SENTENCE)
        trace = run_trace(checkpoint.load_model(), inputs)
        previous = head_statistics(trace, "decoder.self").previous_token
        induction = induction_scores(checkpoint.load_model())
        on_sentence = repeat_scores(trace, np.asarray(inputs.ids).tolist())
    previous_head = strongest(previous, layers=[0])
    induction_head = strongest(np.where(induction > 0.5, on_sentence, 0.0), layers=[1])
    return [
        entry(
            folder,
            induction_head,
            title="Tiny language model: induction head",
            line=f"Looks for what came after the same token before: {on_sentence[induction_head]:.0%} of its attention "
            f"where a token comes again, {induction[induction_head]:.0%} on repeated random tokens.",
            text=SENTENCE,
            site="decoder.self",
        ),
        entry(
            folder,
            previous_head,
            title="Tiny language model: previous-token head",
            line=f"Looks at the token just before: {previous[previous_head]:.0%} of its attention.",
            text=SENTENCE,
            site="decoder.self",
        ),
    ]


def reversal_entries(folder: Path) -> list[dict[str, object]]:
    """The encoder-decoder's cross-attention that runs backwards."""
    with open_checkpoint(folder) as checkpoint:
        share = exactly_reversed(checkpoint)
        trace = run_trace(checkpoint.load_model(), checkpoint.encode(LETTERS, target=LETTERS[::-1]))
        backwards = backward_scores(trace, len(LETTERS))
    head = strongest(backwards, layers=range(len(backwards)))
    return [
        entry(
            folder,
            head,
            title="Tiny encoder-decoder: reversal",
            line=f"Reads the letters backwards: {backwards[head]:.0%} of its attention is on the letter to be written. "
            f"The model reverses {share:.0%} of words it was not trained on without a fault.",
            text=LETTERS,
            target=LETTERS[::-1],
            site="decoder.cross",
        )
    ]


def byte_pair_tokenizer(text: str) -> LibraryTokenizer:
    """Byte-level pairs learned from the text, so that it reads any other text too (Sennrich et al. 2016)."""
    library = Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=VOCAB_SIZE, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator([text], trainer)
    with tempfile.TemporaryDirectory() as folder:
        library.save(f"{folder}/tokenizer.json")
        return load_tokenizer_json(Path(folder) / "tokenizer.json", None)


def train(settings: TrainingSettings, folder: Path, data: TrainingData | None = None) -> None:
    """Train anew, say how it goes, and put the run in the place of the folder when it is done."""
    with tempfile.TemporaryDirectory() as place:
        run = Run(settings, Path(place) / folder.name, data)
        for event in run.events(cancel=CancelToken(), control=TrainControl()):
            if event.accuracy is not None:
                print(f"{folder.name} {event.step}/{event.n_steps} loss {event.loss:.3f} accuracy {event.accuracy:.3f}")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.move(run.folder, folder)


def repeat_scores(trace: Trace, ids: Sequence[int]) -> FloatArray:
    """Mean weight [L, H] that a token gives to what followed it the last time it came after the same token as now."""
    seen: dict[tuple[int, int], int] = {}
    pairs: list[tuple[int, int]] = []
    for query in range(1, len(ids)):
        both = ids[query - 1], ids[query]
        if both in seen:
            pairs.append((query, seen[both] + 1))
        seen[both] = query
    return mean_weights(trace, "decoder.self", pairs)


def backward_scores(trace: Trace, n: int) -> FloatArray:
    """Mean weight [L, H] that each target position gives to the letter it is to write."""
    return mean_weights(trace, "decoder.cross", [(row, n - 1 - row) for row in range(n)])


def mean_weights(trace: Trace, site: str, cells: Sequence[tuple[int, int]]) -> FloatArray:
    """Mean weight [L, H] of some cells, (query, key)."""
    n_layers, n_heads, _, _ = trace.shape(site)
    rows, cols = zip(*cells, strict=True)
    return np.array(
        [
            [trace.attention(site, layer, head)[rows, cols].mean() for head in range(n_heads)]
            for layer in range(n_layers)
        ]
    )


def exactly_reversed(checkpoint: Checkpoint) -> float:
    """The share of held-out examples whose every target is found most probable: written greedily, without a fault."""
    data = TASKS[REVERSAL.task].make_data(REVERSAL.length, REVERSAL.seed, None)
    model, batch = checkpoint.load_model(), data.held_out
    right = []
    for ids, targets in zip(batch.ids_BN, batch.targets, strict=True):
        word = data.tokenizer.decode(ids.tolist())
        logits = run_trace(model, checkpoint.encode(word, target=word[::-1])).logits
        assert logits is not None
        right.append((logits.argmax(-1) == targets[targets != IGNORED]).all())
    return float(np.mean(right))


def strongest(scores: FloatArray, *, layers: Iterable[int]) -> tuple[int, int]:
    """(layer, head) of the largest score within some layers."""
    candidates = [(layer, head) for layer in layers for head in range(scores.shape[1])]
    return max(candidates, key=lambda place: scores[place])


def entry(folder: Path, head: tuple[int, int], **shown: str) -> dict[str, object]:
    """A row of the manifest, see explorer.samples.Sample."""
    return {"folder": folder.name, "layer": head[0], "head": head[1], **shown}


if __name__ == "__main__":
    main()
