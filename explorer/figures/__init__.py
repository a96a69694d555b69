"""Figures and numbers for papers: what a panel shows, as SVG, PDF, PNG, CSV or NPZ."""
