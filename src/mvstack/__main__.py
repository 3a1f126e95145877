"""``python -m mvstack``."""

import gc
import sys

gc.set_threshold(500_000)  # to look for rings in what is read takes a tenth of a short command
try:
    from mvstack.cli.main import main
except KeyboardInterrupt:  # before there is anything that could say more
    sys.exit(130)

main()
