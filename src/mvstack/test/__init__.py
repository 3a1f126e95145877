"""Run the checks of tests/reframe on an installed tree, and say what they found."""
