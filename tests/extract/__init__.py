"""Chunks into facts by rules and the small entity model; the real model runs."""
