"""Recall: from one query and one snapshot of a bank to a ranked, packed and explained answer, without a language model."""
