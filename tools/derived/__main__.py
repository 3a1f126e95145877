"""What `mvstack render` runs in a clone."""

from derived import derived as derived
