"""Run the console alone: `python -m services.console`."""

import sys

from services.console.run import main

sys.exit(main())
