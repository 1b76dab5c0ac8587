"""The page in a real browser. It is a package so that pytest ends scene and browser behind the last of these tests."""
