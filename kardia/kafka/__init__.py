"""Facts of Kafka's protocol that collectors, the observer and the coordinator share, as data.

States and error codes by name (`states`), which request renews a session (`sessions`), releases that compare
(`releases`), and what each client library shows of its application (`libraries`).
"""
