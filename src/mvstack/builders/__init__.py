"""The builders: a protocol, and a folder for each that speaks it."""
