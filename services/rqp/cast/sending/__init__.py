"""The sending agent: questions, attempts and confirmations for one transmission queue (rqp_cast.md 4).

It does not know the receiving agent.
"""
