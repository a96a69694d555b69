"""The one transformer, built from the parts a config names."""
