"""The report of one tree: what was chosen and why, built from which sources, how it ran.

`summary` reads the records, `terminal` and `page` are the two views of what they say.
"""
