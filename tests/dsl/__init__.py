"""Jobs written in Python."""
