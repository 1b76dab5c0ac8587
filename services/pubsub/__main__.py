"""`python -m services.pubsub`: this edge alone, with settings from file and environment."""

import sys

from services.kit.workers import main
from services.pubsub.edge import EDGE

sys.exit(main(EDGE))
