"""``python -m mvstack``."""

import atexit
import gc
import sys

gc.set_threshold(500_000)  # to look for rings in what is read takes a tenth of a short command
atexit.register(gc.freeze)  # nor is it done at the end: the same again
try:
    from mvstack.cli.main import main
except KeyboardInterrupt:  # before there is anything that could say more
    sys.exit(130)

main()
