"""Opinions: what is believed, by whom, how surely, and what evidence moved it."""
