"""Write `docs/settings.md`: `python -m recalld.daemon.settings_docs [FILE]`."""

from __future__ import annotations

import sys
from pathlib import Path

from recalld.daemon.settings import docs_page

if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else "docs/settings.md").write_text(docs_page(), encoding="utf-8")
