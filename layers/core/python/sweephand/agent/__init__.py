"""What does one attempt that takes long, or that has an image of its own, beside nobody who waits for it.

An agent is launched for one lease. It asks the API for its work, says that it is alive, and reports under its epoch.
With its lease it can speak about this one attempt, and about nothing else.
"""
