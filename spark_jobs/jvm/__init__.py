"""What the Java side needs: in comes a committed lock, out go a Java runtime and verified jar files.

`java` finds a runtime, `jars` brings the files of `jars.lock.json` into the cache, `private_*` hold the private names
of the libraries between Python and the JVM. This folder starts no broker and no Spark, and it never accepts a file
whose sha256 differs from the lock.
"""
