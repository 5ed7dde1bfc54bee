"""Lets the tests of this folder import `pages` beside them, and the demo's day without processes."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "demo")]
