"""Takes secrets out of text before anything keeps it.

``Safe`` is text that has been through here. Only this module makes it, so that a type checker
finds every way on which raw text could reach the disk, a screen or a memory file.
"""

import re
from dataclasses import dataclass
from typing import NewType

Safe = NewType("Safe", str)
"""Text without secrets. Made by a ``Redactor`` only."""

PLACEHOLDER = re.compile(r"‹secret:[a-z0-9-]+›")
"""What stands where a secret stood. Text that holds one is never offered as runnable."""
