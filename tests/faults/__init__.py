"""The real handlers on AWS in this process, in virtual time, with faults below boto3: a test per row of the table.

The rows are those of the list of faults that this project is to survive; each test names its own. What is not here:

8, 12, 16, 17, 22, 26, 35, 45, 47, 50, 53, 57, 63, 65   the list has no such rows
13  no transaction relies on a token: each carries the condition, and the nonce, of what it changes (tests/contract)
15  there is no index that could be hot
18  there is no index that could lose an entry; a lost due entry is the same promise, in test_sweeps.py
46  StartExecution is throttled: tests/functions/test_execute.py
51, 52  jobs of several tasks do not run on AWS yet
54, 55, 56  containers do not run on AWS yet
58, 59  the calendar has no faults to inject: tests/unit, against an independent oracle
60, 61, 62  loads, not faults: moto would only measure itself
64  a matter of stack updates, in which no handler takes part
66  there is one Region
71  a connection that is gone: tests/functions/test_live.py; one that cannot be told is here
72  logs are not shipped yet

At the ports instead of below boto3, the same promises are in tests/engine/test_every_fault.py and tests/simulation.
"""
