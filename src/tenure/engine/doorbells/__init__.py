"""Wake-ups are hints, never truth: with every doorbell dead, polling still finds the work."""
