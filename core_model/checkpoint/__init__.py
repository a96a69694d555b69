"""Checkpoints: opening what people have, safely, and writing what they can use elsewhere."""
