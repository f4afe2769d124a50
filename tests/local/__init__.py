"""The local runtime in real time: threads, processes, files, and `kill -9`."""
