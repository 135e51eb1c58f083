"""From events to tables, on the real thing: real Spark, real Delta, a real broker where Kafka is involved."""
