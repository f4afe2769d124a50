"""What the jobs of this folder share."""
