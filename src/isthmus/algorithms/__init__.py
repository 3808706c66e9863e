"""The algorithms: pure functions of what one rank does, one file per collective.

`baselines` has the ways of MPI libraries, `parts` what algorithms are made of. The
registry imports the files of this folder and of `baselines` when an algorithm is first
looked for.
"""
