"""Recall: from one query and one snapshot of a bank to a ranked, packed, explained answer, without a language model."""
