"""The rows of a batch: how they are set up and how they are stepped."""
