"""What a task can run, told in stories: each kind, on each engine, from success to cancellation."""
