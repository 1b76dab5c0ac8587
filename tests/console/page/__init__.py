"""Tests of the page in a browser. It is a package so that pytest ends the scene and the browser after its last test."""
