"""Which machines there are: `.rqprc`, settings and peers of the store (rqp_cast.md 1.1).

It opens no connection.
"""
