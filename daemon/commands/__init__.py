"""The commands of `recalld`, one module for each group; `recalld.daemon.cli` puts them together."""
