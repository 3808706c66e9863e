"""Pure functions that give the rounds of one rank, a file for each collective.

`baselines` has the algorithms of MPI libraries, `parts` the building blocks. The
registry imports the files of this folder and of `baselines` when an algorithm is first
looked for, so that `import isthmus` stays fast.
"""
