"""The source mirror: every source by its SHA-256, for both builders and for sites without network.

Looked for in this order: the mirror, the mirrors that a site names, upstream, the Debian source
archive, PyPI (wheels). Whatever the place, the bytes must have a hash that the recipe lists, or
one that a person accepted on purpose. docs/sources.md is the guide.
"""
