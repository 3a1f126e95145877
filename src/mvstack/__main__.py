"""``python -m mvstack``."""

from mvstack.cli import main

main()
