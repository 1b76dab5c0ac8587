"""Commands that set up, check and test the project. No part of the product imports them."""
