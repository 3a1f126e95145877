"""``python -m mvstack``."""

import sys

try:
    from mvstack.cli.main import main
except KeyboardInterrupt:  # before there is anything that could say more
    sys.exit(130)

main()
