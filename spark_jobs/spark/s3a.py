"""Spark's side of an S3-compatible store: which jars it needs and how Hadoop is told where the store is.

Fetched only when a place in a store is named: 36 jars, 13 MB (hadoop-aws and the parts of AWS's SDK that it refers to;
the bundle that its pom asks for has 686 MB). Endpoint and region are those of `stores.access`, so that delta-rs and
Spark use one store. Credentials are looked for by every JVM itself, in AWS's order, and are in no setting of Spark.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from stores import access

JARS = "s3a"
"""Name of the set in the lock."""

CREDENTIALS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
"""Environment, web identity, profile, container, machine."""

CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
"""A file of the checkpoint is written under another name and renamed, which is a copy of the object: whole or not
there. The one that a disk has here (`session.LOCAL_CHECKPOINTS`) leaves a file that is there already: Hadoop's S3A does
not rename onto it, and Spark only warns. Of a batch that is repeated after a crash the changes of the first attempt
would then stand in the store, and those of the second in the worker's memory; the state of both together is damaged.
This one takes the old file away first (`tests/stores/test_checkpoint_files_of_spark.py`)."""


def settings(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Settings of a session that reads or writes a store."""
    environ = os.environ if environ is None else environ
    options = access.delta_options(environ)
    found = {
        "fs.s3a.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "fs.AbstractFileSystem.s3a.impl": "org.apache.hadoop.fs.s3a.S3A",
        "fs.s3a.aws.credentials.provider": CREDENTIALS,
        "fs.s3a.endpoint.region": options["aws_region"],
        "fs.s3a.connection.timeout": "30s",
        "fs.s3a.connection.establish.timeout": "5s",
        # A folder is a name here, and nobody needs an object that stands for one.
        "fs.s3a.directory.marker.retention": "keep",
        "fs.s3a.bucket.probe": "0",
        # Copies within the store, one request each; the parallel ones are for gigabytes.
        "fs.s3a.input.stream.type": "classic",
        "fs.s3a.optimized.copy.from.local.enabled": "false",
    }
    endpoint = options.get("aws_endpoint", "")
    if endpoint:
        found |= {
            "fs.s3a.endpoint": endpoint,
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": str(urlsplit(endpoint).scheme != "http").lower(),
        }
    return {f"spark.hadoop.{key}": value for key, value in found.items()} | {
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINTS,
    }
