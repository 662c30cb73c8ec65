"""Measurements that anyone can repeat: retrieval quality on a LoCoMo-shaped file, latency, and growth."""
