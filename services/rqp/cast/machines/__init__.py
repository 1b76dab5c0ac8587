"""The known machines: from `.rqprc`, the settings and the store's peers (rqp_cast.md 1.1). Opens no connection."""
