"""What every room needs: errors, files, processes, locks, progress. Knows nothing of stacks."""
