"""The RQP edge: receive for local queues, send transmission queues to other systems (protos/rqp_mca.md, rqp_cast.md).

RQP addresses a queue by a number. A queue of another system is a local queue with `spec.remote`, a transmission queue:
messages put into it are sent over the protocol it names. `outbox` ensures that exactly one process owns each
transmission queue and runs the protocol's sending agent for it; `condition` reports why its messages are not delivered.
Peers come from the settings, the store and `.rqprc` files; `name_resolver` resolves their names.

`service` is what both protocols share, `edge` is the entry point for the kit. The agents are the packages `mca` and
`cast`. `dead_letter_format` writes dead letters as GARBAGE_MSGs. The package knows no other edge and does not speak to
Redis.
"""
