"""The binary cache: what one machine built, signed, for others of the same kind to install.

For EasyBuild each node of a plan is one signed manifest and one archive, found by the node's
content hash; for Spack it is Spack's own build cache in the same folder, signed with the same key.
docs/cache.md is the guide.
"""
