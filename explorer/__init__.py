"""The desktop application: panels, plots and the threads that answer them."""
