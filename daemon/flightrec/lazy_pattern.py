"""Regular expressions that cost nothing until they are used.

The rules for secrets are some ninety expressions. Compiling them takes longer than the rest of a
short command, which needs none or a few.
"""

import re
from typing import cast


class _LazyPattern:
    """Compiles on the first use of a method; from then on the pattern's own methods answer."""

    def __init__(self, expression: str) -> None:
        self._expression = expression

    def __getattr__(self, name: str) -> object:
        pattern = re.compile(self._expression)
        for method in ("match", "search", "finditer", "findall", "fullmatch", "sub", "split"):
            setattr(self, method, getattr(pattern, method))
        return getattr(pattern, name)


def lazy_pattern(expression: str) -> re.Pattern[str]:
    """Return what acts as the compiled expression; a mistake in it shows at the first use."""
    return cast("re.Pattern[str]", _LazyPattern(expression))
