"""How a client proves who it is and whom it trusts: one file in the names that people have, for every library in use.

    properties         the file: lines of librdkafka, or a properties file of Java
    librdkafka, java   what its names mean, as one `ClientConfig` (`config`); refused where they mean nothing
    jaas, keystores    the two that hide in a value: `sasl.jaas.config`, and stores of keys (PEM, PKCS #12, JKS)
    rendering          a `ClientConfig` in the names of librdkafka, of kafka-python
    for_java           the same for Java (Spark's Kafka source), secrets by reference to a file
    reach, diagnosis   the first connection; why a broker does not take us, in one sentence
    rights             the least rights that each part needs, as lines of kafka-acls.sh

No value of the file is in a message, a command line, an environment or a setting of Spark: `Secret` hides itself.
"""
