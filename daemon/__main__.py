"""`python -m recalld.daemon`: the same as the console script `recalld`."""

from __future__ import annotations

from recalld.daemon.cli import main

if __name__ == "__main__":
    main()
