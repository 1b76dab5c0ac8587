"""The text pub/sub edge: SEND to a tag, SUBSCRIBE to a tag or a prefix of tags (protos/pubsub.md, docs/pubsub.md).

In: `session` is one client's connection. Its SENDs go through the `bridge` to the store's log, with a copy for each
queue that subscribes to their tag (`bindings`). Its SUBSCRIBEs ask the log for its end, which is their moment.

Out: `feed` follows the log and hands each batch to the `fanout`. The `router` (a table, and a `trie` of prefixes) says
which subscriptions match a tag, `render` turns lines of the log into MESSAGE lines, once for all subscribers that are
alike; `subscriber` is one of them, `backlogs` what they all have waiting. Who does not keep up is one of the
`laggards`, each a `catchup` from its own place in the log, with a `table` of what it wants; `recent` are the last
batches, kept in memory.

Between stores: `links`, a package of its own. `service` is what all connections of a process share, `settings` what
may be said, `edge` how the kit starts it. Router, trie and render do no I/O and know neither the kit nor the store.
The package must not know any other edge, nor speak to Redis.
"""
