"""`python -m services.console`: the console alone, with settings from file and environment."""

import sys

from services.console.run import main

sys.exit(main())
