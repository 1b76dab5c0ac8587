"""The text pub/sub edge: SEND to a tag, SUBSCRIBE to a tag or a prefix of tags (protos/pubsub.md).

What each message goes through: `router` says which subscriptions match its tag (exact patterns in a table, prefixes in
a `trie`), and `render` turns lines of the log into the MESSAGE lines of a connection. These parts do no I/O and know
neither the kit nor the store. The package must not know any other edge, nor speak to Redis.
"""
