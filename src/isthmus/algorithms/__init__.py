"""The algorithms: pure functions of what one rank does, one file per collective.

The registry imports every file of this folder when an algorithm is first looked for.
"""
