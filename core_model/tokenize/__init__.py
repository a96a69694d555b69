"""Text to token ids and back, for every kind of tokenizer file a checkpoint comes with."""

from core_model.tokenize.encoding import Encoding, Frames, Patches, Tokenizer
from core_model.tokenize.loading import load_tokenizer

__all__ = ["Encoding", "Frames", "Patches", "Tokenizer", "load_tokenizer"]
