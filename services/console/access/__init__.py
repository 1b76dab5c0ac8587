"""Who asks: tokens, a trusted proxy, the token of a console without set-up, and what foreign pages may ask.

It knows no route.
"""
