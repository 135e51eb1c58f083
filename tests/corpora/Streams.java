import java.io.*;
import java.nio.file.Files;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/** A small application of Kafka Streams that speaks the streams protocol: `BOOTSTRAP NAME GROUP [key=value...]`. Told
 * `stall MS` its thread does not poll for so long; `close` ends it. */
public class Streams {
    static volatile long stallMs;

    static class Stalling implements Processor<String, String, String, String> {
        public void init(ProcessorContext<String, String> context) {
            context.schedule(Duration.ofMillis(200), PunctuationType.WALL_CLOCK_TIME, at -> {
                long ms = stallMs;
                stallMs = 0;
                try { Thread.sleep(ms); } catch (InterruptedException error) { throw new RuntimeException(error); }
            });
        }

        public void process(Record<String, String> record) { }
    }

    public static void main(String[] words) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("client.id", words[1]);
        settings.put("application.id", words[2]);
        settings.put("group.protocol", "streams");
        settings.put("num.stream.threads", "1");
        settings.put("replication.factor", "1");
        settings.put("state.dir", Files.createTempDirectory("streams").toString());
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        for (String word : Arrays.copyOfRange(words, 3, words.length)) {
            String[] both = word.split("=", 2);
            settings.put(both[0], both[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> orders = builder.stream("orders");
        orders.process(Stalling::new);
        orders.groupByKey().count().toStream().mapValues(String::valueOf).to("refunds");
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> System.out.println(
            "{\"t\": " + System.currentTimeMillis() + ", \"member\": \"" + words[1] + "\", \"what\": \"" + now + "\"}"));
        streams.start();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null && !line.equals("close"); ) {
            stallMs = Long.parseLong(line.split(" ")[1]);
        }
        streams.close();
        System.exit(0);
    }
}
