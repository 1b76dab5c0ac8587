"""The receiving and sending agents of RQP/cast (protos/rqp_cast.md): sockets, names and the store.

Receiving: `questions` receives QUESTION_MSGs over UDP; `sessions` begins a `session` for each one that is answered, on
two `ports`, once there are free `session_slots`; `insertion` is the store's side of a session, `claim_connections`
carry its reservations. Sending: a `sending_agent` for each transmission queue leases into its `prefetch_buffer`,
keeps `notes` with them, and makes an `attempt` for each: `question_sender` asks, `findreceiver` receives answers,
`declines` rejects those not taken, `confirmations` receives the outcome. Both: `machines` is the known machines and
their options, `connections` carry one message each, `rate_limit` bounds the questions of one address, `counts` are the
metrics. `agent` is the edge's entry point. The protocol's state machines decide what is done.
"""
