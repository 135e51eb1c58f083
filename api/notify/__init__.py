"""Tables to messages: what somebody must be told now, pushed to Alertmanager and to webhooks.

In: the same current view that the API answers from, looked at every `refresh_ms`. Out: alerts that are raised,
refreshed and resolved. `conditions` says what is so (pure), `lifecycle` what is to be told about it (pure), `outbox`
keeps what has not been delivered, `state` puts both on disk, `targets` makes messages, `delivery` sends them, `run`
goes one round. Reads no log, writes no table. It fails towards telling twice: what was sent and is not yet known on
disk to have arrived is sent again, with the same id.
"""
