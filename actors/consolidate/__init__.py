"""From facts to observations."""
