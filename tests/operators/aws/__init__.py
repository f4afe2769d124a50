"""Tasks that call AWS, on an account in memory."""
