"""`python -m services.ring`: run this edge alone, with settings from file and environment."""

import sys

from services.kit.workers import main
from services.ring.edge import EDGE

sys.exit(main(EDGE))
