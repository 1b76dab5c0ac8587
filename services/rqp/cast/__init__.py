"""RQP/cast in the edge: what the machines of protos/rqp_cast say is to be done, with sockets, names and the store.

Receiving: `questions` hears what is asked over UDP and begins a `session` for each question that it answers, on two
`ports`; `insertion` is what sessions ask of the store. Sending: `sending` is the agent of one transmission queue. Its
`stock` are the messages that it has taken, with `notes` of what must survive it; an `attempt` carries one of them:
`asker` asks, `findreceiver` hears answers, `confirmations` what became of it. Both: `machines` is whom there is to ask
and how each is spoken to, `wires` are connections of one message, `limits` what one address may ask for, `counts` the
metrics, `clock` the store's time. `agent` is all of it as the edge starts it. Nothing here decides what the protocol
decides.
"""
