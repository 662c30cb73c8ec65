"""The demonstration itself, from a subprocess as `make demo ONCE=1` runs it."""

from __future__ import annotations

import subprocess
import sys


def test_the_demonstration_finds_its_evidence_and_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "recalld.daemon.demo", "--once", "--runtime", "inline"],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Hadrian" in done.stdout
    assert "of 6 questions" in done.stdout
