"""Test the page in a browser. This is a package so that pytest ends scene and browser after its last test."""
