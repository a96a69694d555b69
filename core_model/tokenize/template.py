"""Which control tokens stand around a text, in the notation of the tokenizers library.

"[CLS] $A [SEP] $B:1 [SEP]:1" reads: the token [CLS], the text, [SEP], the pair with segment 1, [SEP] with segment 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Template:
    """Control tokens around one text and around a pair."""

    single: str = "$A"
    pair: str = "$A $B:1"

    def parts(self, *, with_pair: bool) -> Iterator[tuple[str, int]]:
        """("$A", "$B" or a control token; segment) from left to right."""
        for part in (self.pair if with_pair else self.single).split():
            name, _, type_id = part.rpartition(":")
            if name and type_id.isdigit():
                yield name, int(type_id)
            else:
                yield part, 0

    def tokens(self) -> list[str]:
        """The control tokens it names, each once."""
        parts = [*self.parts(with_pair=False), *self.parts(with_pair=True)]
        return list(dict.fromkeys(name for name, _ in parts if name not in ("$A", "$B")))


PLAIN = Template()


def bert(cls: str, sep: str) -> Template:
    """Devlin et al. 2018: segments 0 and 1."""
    return Template(single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} $B:1 {sep}:1")


def roberta(cls: str, sep: str) -> Template:
    """Liu et al. 2019: two separators, no segments."""
    return Template(single=f"{cls} $A {sep}", pair=f"{cls} $A {sep} {sep} $B {sep}")


def ended(eos: str) -> Template:
    """T5: each text ends in the end token."""
    return Template(single=f"$A {eos}", pair=f"$A {eos} $B {eos}")


def begun(bos: str | None, eos: str | None) -> Template:
    """Decoders: the begin and end tokens that the configuration asks for, around each text."""
    before, after = (f"{bos} " if bos else ""), (f" {eos}" if eos else "")
    before_pair, after_pair = (f"{bos}:1 " if bos else ""), (f" {eos}:1" if eos else "")
    single = f"{before}$A{after}"
    return Template(single=single, pair=f"{single} {before_pair}$B:1{after_pair}")
