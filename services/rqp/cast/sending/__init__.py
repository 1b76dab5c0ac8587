"""The sending agent: questions, attempts and confirmations for one transmission queue (rqp_cast.md 4)."""
