"""From a name on the command line to an installed tree."""
