"""Measure MPIs against each other in turns, and tune what is ours to choose by measuring."""
