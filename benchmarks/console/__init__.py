"""How soon the console answers, and what it costs while somebody watches."""
