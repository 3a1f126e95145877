"""An installed tree on disk: its layout, its records, its lock, its modules."""
