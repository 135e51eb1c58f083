"""Groups of brokers whose requests are not read: what the coordinator's own sentences and records prove, and no more.

`dispatch` decides which rules a group follows; `lines` are those of server.log, `reasons` what its words mean, `stored`
those of the records of `__consumer_offsets`, alone or beside the lines; `sampled` those of samples of the admin API;
`epochs` are the lines about groups that have epochs, which add causes beside requests and records as well; `naming` is
who is a member as far as somebody names it. There are no timers here: nothing is foretold, and silence says nothing.
"""
