"""The InfiniBand fabric of a system: as its file describes it, as it is, and what differs."""
