"""Modules that several folders of tests share are in `support`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "support"))
