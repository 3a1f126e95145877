"""The hand-written facts (systems, releases, policy) as checked data."""
