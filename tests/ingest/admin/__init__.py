"""What is asked of a cluster: samples of groups, ends of partitions, lengths of sessions; most of it on a real
broker."""
