"""The text pub/sub edge: SEND to a tag, SUBSCRIBE to a tag or a prefix of tags (protos/pubsub.md, docs/pubsub.md).

In: `session` is one client's connection. Its SENDs go through the `bridge` to the store's log, with a copy for each
queue that subscribes to their tag (`bindings`); while they wait, `fair_queue` serves clients in turn. Its SUBSCRIBEs
take effect at the end of the log.

Out: `feed` follows the log and hands each batch to the `fanout`. The `router` (a table, and a `trie` of prefixes) finds
the subscriptions that match a tag, `render` turns lines of the log into MESSAGE lines, once for all subscribers that
are alike; `subscriber` is one of them, `backlogs` bounds the output that waits for all of them. A subscriber that falls
behind becomes one of the `slow_consumers`, each a `catchup` from its own place in the log with a `subscription_table`;
`recent_entries` and `read_cache` keep parts of the log in memory for them. `subscription_ends` ends subscriptions.

Between stores: the package `links`. `service` is what all connections of a process share, `edge` is the entry point for
the kit. Router, trie and render do no I/O and know neither the kit nor the store. The package knows no other edge and
does not speak to Redis.
"""
