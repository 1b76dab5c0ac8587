"""The RQP edge: Unix message queues of other systems, and ours for them (protos/rqp_mca.md, protos/rqp_cast.md).

RQP sees a queue through a number. What another system keeps a queue for is a queue here too, with `spec.remote`:
whatever is put in leaves over the protocol that it names. `outbox` sees to it that each such queue
has one process that owns it, and runs that protocol's sending agent there; `condition` is what is wrong with it.
Whom an agent may ask comes from the settings, the store and files (`rqprc`); `names` looks names up.

`service` is what both protocols share, `edge` is how the kit starts it. The agents are
packages of their own: `mca` for RQP/MCA. It must not know any other edge, nor speak to Redis.
`letters` is how dead letters are written into files.
"""
