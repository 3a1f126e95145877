"""The Spack recipes, read without Spack."""
