"""What a change rebuilds: the plans of a git revision held against those of the working tree."""
