"""``python -m flightrec`` is the ``flightrec`` command."""

import sys

from flightrec.main import main

sys.exit(main())
