"""Tests of the follower: real stories, traffic of the model itself, and brokers with a planted defect."""
