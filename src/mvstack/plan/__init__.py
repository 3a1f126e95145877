"""From system, release and policy to the plan of a partition: what it gets, and why. Pure."""
