"""What a release names, held against what is there to build it."""
