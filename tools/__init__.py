"""What the project is set up, checked and tested with. No part of the product imports it."""
