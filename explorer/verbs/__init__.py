"""What the command line can do, one file a verb: `add_arguments(parser)` and `run(arguments) -> int`."""
