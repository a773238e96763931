"""What the user says: scenes, scene files, options, switches of a stepper, values of a field."""
