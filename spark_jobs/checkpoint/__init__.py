"""What a job has on disk to go on from: its checkpoint, the state of its lanes, and the ways to begin them otherwise.

`checkpoint_directory` says what a checkpoint is and whether the tables belong to it; `kardia_files` are the files in it
that are not Spark's. `journal` is what is stored of a lane, `state_codec` its bytes, `state_migrations` the steps from
the state of an earlier release. Lanes begin with the files of `initial_lanes` where their number was changed
(`change_lane_count`), the topic was made again (`recreated_topic`), or saved state is damaged (`damaged_lanes`).
"""
