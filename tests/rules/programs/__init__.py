"""Small programs, faulty and correct, and what the probe saw of each."""
