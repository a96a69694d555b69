"""What surrounds the panels: their hosts and docks, the bars, the palette."""
