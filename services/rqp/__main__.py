"""`python -m services.rqp`: this edge alone, with settings from file and environment."""

import sys

from services.kit.workers import main
from services.rqp.edge import EDGE

sys.exit(main(EDGE))
