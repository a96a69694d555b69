"""Training small transformers: tasks, data, schedules, precision, the loop and its run folders."""
