"""A cron and DAG scheduler that accounts for every fire time."""
