"""From a plan to an installed tree: prerequisites, lock, sources, builder, modules, records."""
