"""Jobs: redrives, purges and empties that go on after their request was answered, on any console of the store.

It knows no request.
"""
