"""Redistribution of a distributed array: the messages between two layouts, in order.

Nothing needs MPI, so redistributions are verified and drawn without ranks.
`isthmus.Redistribution` runs the rounds.
"""
