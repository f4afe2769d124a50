"""`python -m sweephand` is `sweephand`."""

from sweephand.cli import main

if __name__ == "__main__":
    main()
