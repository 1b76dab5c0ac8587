"""`python -m services.tmq`: this edge alone, with settings from file and environment."""

import sys

from services.kit.workers import main
from services.tmq.edge import EDGE

sys.exit(main(EDGE))
