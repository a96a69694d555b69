"""Text to token ids and back, for every kind of tokenizer file a checkpoint comes with."""

from core_model.tokenize.encoding import Encoding, Tokenizer
from core_model.tokenize.loading import load_tokenizer

__all__ = ["Encoding", "Tokenizer", "load_tokenizer"]
