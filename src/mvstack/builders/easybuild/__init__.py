"""EasyBuild as a builder."""
