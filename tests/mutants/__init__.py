"""Mutation of our own code: small faults put into the runtime, and the tests that find
them.

    python tests/mutants --sample 300 --jobs 8 --minutes 9 --log mutants.csv
    python tests/mutants --again mutants.csv --ranks 2,3,5,8 --log survivors.csv

A test suite that is always green does not say what it would notice. Here one operator,
number, condition or statement at a time is changed in a copy of the sources, and the
tests that execute the changed line run against it. A mutant that survives all of them
is equivalent, harmless, or a fault that nobody would notice: who reads the log decides.

First all tests run once, unchanged, to see which lines each of them executes and how
long it takes (`lines`). Then every mutant of a sample (`mutations`) gets a few quick
tests that execute its line, of as many files as may be, and those that survive get more
(`run`). The log is a table to which rows are appended, the last row of a mutant counts;
a run that is ended goes on where it was when it is started again with the same log. A
second run gives all tests to what survived the first.
"""
