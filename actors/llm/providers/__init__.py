"""The APIs that are spoken, one module each. A module is imported when its provider is first used."""
