"""What a trace says about a model: one file an analysis, each exact at any length, none holding n x n."""
