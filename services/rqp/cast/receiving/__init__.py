"""The receiving agent: questions that are heard, sessions, and insertion into the store (rqp_cast.md 3, 5).

It does not know the sending agent.
"""
