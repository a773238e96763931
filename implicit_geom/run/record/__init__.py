"""What a run keeps of its steps, packed."""
