"""CI pipelines made from plans: what changed, what must be done, and the jobs that do it."""
