"""Cloud images: the same release, on a disk that can be started, tested before anyone starts it."""
