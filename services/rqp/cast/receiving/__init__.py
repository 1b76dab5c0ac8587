"""The receiving agent: questions, sessions and insertion into the store (rqp_cast.md 3, 5)."""
