"""Transformers and what happens inside them: a library that knows no window."""
