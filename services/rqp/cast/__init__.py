"""RQP/cast in the edge: what the machines of protos/rqp_cast say is to be done, with sockets, names and the store.

Receiving: `questions` hears what is asked over UDP; `sessions` begins a `session` for each question that is answered,
on two `ports`, once there are `places`; `insertion` is what sessions ask of the store, over `lanes` for what they
claim. Sending: `sending` is the agent of one transmission queue. Its `stock` are the messages that it has taken, with
`notes` of what must survive it; an `attempt` carries one of them, in its `line`: `asker` asks, `findreceiver` hears
answers, of which `declines` are those that nobody takes, and `confirmations` what became of it. Both: `machines` is
whom there is to ask and how each is spoken to, `connections` are connections of one message, `limits` what one address may
ask for, `counts` the metrics, `asked` verbs of the store with `await`. `agent` is all of it
as the edge starts it. Nothing here decides what the protocol decides.
"""
