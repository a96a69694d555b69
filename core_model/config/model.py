"""A whole model."""

from __future__ import annotations

from dataclasses import dataclass

from core_model.config.attention import AttentionSpec
from core_model.config.heads import HeadSpec
from core_model.config.stack import StackConfig
from core_model.config.vectors import VectorsSpec
from core_model.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class SpecialTokens:
    """Ids with a role; None where the model has none."""

    begin: int | None = None
    end: int | None = None
    padding: int | None = None
    decoder_start: int | None = None


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A whole model: encoder, decoder or both, and its output head (None: hidden states only).

    `shared_embedding` makes the decoder read the encoder's token table. Instead of them a model may have two towers
    that do not read each other, `text` and `vision` (CLIP, Radford et al. 2021), or one of the two; `vectors` are what
    each makes of what it read, and how they are compared.
    """

    encoder: StackConfig | None = None
    decoder: StackConfig | None = None
    head: HeadSpec | None = None
    shared_embedding: bool = False
    special: SpecialTokens = SpecialTokens()
    text: StackConfig | None = None
    vision: StackConfig | None = None
    vectors: VectorsSpec | None = None

    def __post_init__(self) -> None:
        if not self.stacks:
            raise ConfigError("the model has neither an encoder nor a decoder: give at least one")
        if self.has_towers and (self.encoder or self.decoder):
            raise ConfigError("the model has a tower (text, vision) beside an encoder or a decoder: leave one kind out")
        empty = next((name for name, stack in self.stacks.items() if not stack.layers), None)
        if empty is not None and not (empty == "encoder" and self.decoder):
            raise ConfigError(f"{empty}.layers is empty: only an encoder beside a decoder may have its output given")
        crosses = self.decoder is not None and any(layer.cross_attention for layer in self.decoder.layers)
        if self.encoder and self.decoder and not crosses:
            raise ConfigError("the decoder has no cross_attention: with an encoder, at least one layer must read it")
        if crosses and self.encoder is None:
            raise ConfigError("the decoder has cross_attention, but there is no encoder for it to read")
        for name in ("encoder", "text", "vision"):
            if name in self.stacks and any(layer.cross_attention for layer in self.stacks[name].layers):
                raise ConfigError(f"the {name} has cross_attention: only a decoder reads an encoder")
        if self.encoder and self.decoder and self.shared_embedding:
            sizes = [(s.tokens.vocab_size, s.tokens.d_embedding) for s in (self.encoder, self.decoder)]
            if sizes[0] != sizes[1]:
                raise ConfigError(f"shared_embedding is True: the token tables must then be one size, not {sizes}")
        for name, stack in self.stacks.items():
            if stack.d_output is not None and (name != self.output_name or self.head or self.vectors):
                raise ConfigError(
                    f"{name}.d_output is {stack.d_output}: only hidden states that nothing reads end in another width"
                )
        if self.head and self.head.tied:
            self._check_tied(self.head)
        if self.vectors is not None:
            self._check_vectors(self.vectors)

    def _check_vectors(self, vectors: VectorsSpec) -> None:
        widths: dict[str, int] = {}
        for name, vector in vectors.by_tower.items():
            tower = getattr(self, name)
            if tower is None:
                raise ConfigError(f"vectors.{name} is given: there is no tower of {name} to make it")
            widths[name] = vector.d_output or tower.d_model
        if vectors.compared and len(set(widths.values())) > 1:
            raise ConfigError(
                f"vectors are {widths['text']} and {widths['vision']} wide: to be compared they must be equal"
            )
        if vectors.compared and self.head is not None:
            raise ConfigError(f"head is {self.head.task}: a model whose vectors are compared has no other output")

    def _check_tied(self, head: HeadSpec) -> None:
        table = self.output_stack.tokens
        if head.n_outputs != table.vocab_size:
            raise ConfigError(
                f"head.n_outputs is {head.n_outputs}: a tied head has one output a token, {table.vocab_size}"
            )
        width = head.transform.d_output if head.transform else self.output_stack.d_model
        if width != table.d_embedding:
            raise ConfigError(
                f"head.tied is True: its input is {width} wide, but token vectors are {table.d_embedding} wide"
            )

    @property
    def stacks(self) -> dict[str, StackConfig]:
        """The stacks there are, by name, in the order they run."""
        named = {"encoder": self.encoder, "decoder": self.decoder, "text": self.text, "vision": self.vision}
        return {name: stack for name, stack in named.items() if stack is not None}

    @property
    def output_name(self) -> str:
        """The name of the stack whose hidden states are the model's output; of two towers the text's."""
        return next(name for name in ("decoder", "encoder", "text", "vision") if name in self.stacks)

    @property
    def output_stack(self) -> StackConfig:
        """The stack whose hidden states are the model's output."""
        return self.stacks[self.output_name]

    @property
    def has_towers(self) -> bool:
        """Whether the stacks are towers that do not read each other."""
        return self.text is not None or self.vision is not None

    def attention_layers(self) -> dict[str, tuple[AttentionSpec, ...]]:
        """Attention of every layer by site: encoder.self, decoder.self, decoder.cross, text.self, vision.self.

        The attention that pools a tower is the only layer of a site of its own, vision.pool.
        """
        sites = {
            f"{name}.self": tuple(layer.attention for layer in stack.layers)
            for name, stack in self.stacks.items()
            if stack.layers
        }
        if self.encoder and self.decoder:
            cross = tuple(layer.cross_attention for layer in self.decoder.layers if layer.cross_attention)
            sites["decoder.cross"] = cross
        for name, vector in (self.vectors.by_tower if self.vectors else {}).items():
            if vector.attention is not None:
                sites[f"{name}.pool"] = (vector.attention.attention,)
        return sites
