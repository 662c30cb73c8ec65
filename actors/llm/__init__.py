"""Language models behind one protocol: providers, structured answers, retries, permits. No storage, no actors."""
