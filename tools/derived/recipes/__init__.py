"""The Spack recipes, read without Spack, and the rules that they keep."""
