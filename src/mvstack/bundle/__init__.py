"""One folder with all that a machine without a network needs to install a system."""
