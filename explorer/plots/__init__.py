"""Plots: the only place that knows pyqtgraph."""
