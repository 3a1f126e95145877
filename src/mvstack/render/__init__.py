"""From a plan to the files that builders, modules and checks read. Pure."""
