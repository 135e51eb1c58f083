import java.io.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/**
 * Many Java consumers in one process, told what to do by lines on standard input; what happens to them is said as JSON
 * lines. `start NAME KIND GROUP [key=value...]` with KIND classic, consumer or share; `do NAME stall MS|rest MS|slow MS|
 * close|topics A,B|regex P`; who rests has paused all its partitions and polls; `load TOPIC RECORDS-A-SECOND`; `admin group G key=value|delete G|remove G|drop TOPIC|grow TOPIC N|create TOPIC N`.
 * A streams application is in Streams.java, whose jars are a set of their own.
 */
public class Crowd {
    static final Map<String, Member> MEMBERS = new ConcurrentHashMap<>();
    static String bootstrap;

    public static void main(String[] words) throws Exception {
        bootstrap = words[0];
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] told = line.trim().split(" ");
            try {
                switch (told[0]) {
                    case "start" -> new Member(told[1], told[2], told[3], settings(told, 4)).start();
                    case "do" -> MEMBERS.get(told[1]).commands.add(Arrays.copyOfRange(told, 2, told.length));
                    case "load" -> load(told[1], Integer.parseInt(told[2]));
                    case "admin" -> new Thread(() -> admin(told)).start();
                    default -> say("driver", "unknown " + line);
                }
            } catch (Exception error) {
                say(told[1], "failed " + error);
            }
        }
        System.exit(0);
    }

    /** So many records a second, as long as the process lives: without them nobody commits. */
    static void load(String topic, int perSecond) {
        String serializer = "org.apache.kafka.common.serialization.StringSerializer";
        Map<String, Object> with = Map.of("bootstrap.servers", bootstrap, "client.id", "load", "acks", "1",
            "key.serializer", serializer, "value.serializer", serializer);
        Thread thread = new Thread(() -> {
            try (var producer = new KafkaProducer<String, String>(with)) {
                for (long number = 0; ; number++) {
                    producer.send(new ProducerRecord<>(topic, "" + number, "x"));
                    Thread.sleep(1000 / perSecond);
                }
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    static Map<String, String> settings(String[] told, int from) {
        Map<String, String> found = new HashMap<>();
        for (int place = from; place < told.length; place++) {
            String[] both = told[place].split("=", 2);
            found.put(both[0], both[1]);
        }
        return found;
    }

    static void admin(String[] told) {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "client.id", "setup"))) {
            switch (told[1]) {
                case "group" -> {
                    List<AlterConfigOp> changes = new ArrayList<>();
                    settings(told, 3).forEach((key, value) ->
                        changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
                    admin.incrementalAlterConfigs(
                        Map.of(new ConfigResource(ConfigResource.Type.GROUP, told[2]), changes)).all().get();
                }
                case "delete" -> admin.deleteConsumerGroups(List.of(told[2])).all().get();
                case "remove" -> admin.removeMembersFromConsumerGroup(
                    told[2], new RemoveMembersFromConsumerGroupOptions()).all().get();
                case "drop" -> admin.deleteTopics(List.of(told[2])).all().get();
                case "grow" -> admin.createPartitions(
                    Map.of(told[2], NewPartitions.increaseTo(Integer.parseInt(told[3])))).all().get();
                case "create" -> admin.createTopics(
                    List.of(new NewTopic(told[2], Integer.parseInt(told[3]), (short) 1))).all().get();
                default -> throw new IllegalArgumentException(told[1]);
            }
            say("admin", String.join(" ", told));
        } catch (Exception error) {
            say("admin", String.join(" ", told) + " failed " + error);
        }
    }

    static void say(String member, String what) {
        synchronized (System.out) {
            String text = what.replace("\\", "/").replace("\"", "'").replace("\n", " ");
            System.out.println(
                "{\"t\": " + System.currentTimeMillis() + ", \"member\": \"" + member + "\", \"what\": \"" + text + "\"}");
            System.out.flush();
        }
    }

    static class Member extends Thread {
        final String name, kind;
        final Map<String, Object> settings = new HashMap<>();
        final BlockingQueue<String[]> commands = new LinkedBlockingQueue<>();
        String topics = "orders";
        volatile long slowMs;

        Member(String name, String kind, String group, Map<String, String> more) {
            super(name);
            this.name = name;
            this.kind = kind;
            setDaemon(true);
            settings.put("bootstrap.servers", bootstrap);
            settings.put("group.id", group);
            settings.put("client.id", name);
            settings.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
            settings.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
            if (!kind.equals("share")) {
                settings.put("group.protocol", kind);
                settings.put("auto.commit.interval.ms", "2000");
            }
            if (kind.equals("classic")) {
                settings.put("session.timeout.ms", "10000");
                settings.put("heartbeat.interval.ms", "2000");
            }
            more = new HashMap<>(more);
            if (more.containsKey("topics")) topics = more.remove("topics");
            if (more.containsKey("slow")) slowMs = Long.parseLong(more.remove("slow"));
            settings.putAll(more);
            MEMBERS.put(name, this);
        }

        public void run() {
            try {
                if (kind.equals("share")) share(); else consume();
            } catch (Throwable error) {
                say(name, "died " + error);
            }
        }

        void pause(long ms) {
            try { Thread.sleep(ms); } catch (InterruptedException error) { throw new RuntimeException(error); }
        }

        void share() {
            KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings);
            consumer.subscribe(List.of(topics.split(",")));
            while (true) {
                String[] told = commands.poll();
                if (told == null) {
                    consumer.poll(Duration.ofMillis(200));
                } else if (told[0].equals("stall")) {
                    say(name, "stalls");
                    pause(Long.parseLong(told[1]));
                } else if (told[0].equals("topics")) {
                    consumer.subscribe(List.of(told[1].split(",")));
                } else {
                    consumer.close();
                    say(name, "closed");
                    return;
                }
            }
        }

        void consume() {
            KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
            ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
                public void onPartitionsRevoked(Collection<TopicPartition> taken) {
                    if (slowMs > 0) pause(slowMs);
                    say(name, "revoked " + taken);
                }

                public void onPartitionsAssigned(Collection<TopicPartition> given) { say(name, "assigned " + given); }

                public void onPartitionsLost(Collection<TopicPartition> lost) { say(name, "lost " + lost); }
            };
            subscribe(consumer, listener);
            long restsUntil = 0;
            while (true) {
                if (restsUntil > 0 && System.currentTimeMillis() > restsUntil) {
                    consumer.resume(consumer.paused());
                    restsUntil = 0;
                    say(name, "works");
                }
                String[] told = commands.poll();
                if (told == null) {
                    consumer.poll(Duration.ofMillis(200));
                } else if (told[0].equals("rest")) {
                    say(name, "rests");
                    consumer.pause(consumer.assignment());
                    restsUntil = System.currentTimeMillis() + Long.parseLong(told[1]);
                } else if (told[0].equals("stall")) {
                    say(name, "stalls");
                    pause(Long.parseLong(told[1]));
                } else if (told[0].equals("slow")) {
                    slowMs = Long.parseLong(told[1]);
                } else if (told[0].equals("topics")) {
                    topics = told[1];
                    subscribe(consumer, listener);
                } else if (told[0].equals("unsubscribe")) {
                    consumer.unsubscribe();
                } else {
                    consumer.close();
                    say(name, "closed");
                    return;
                }
            }
        }

        void subscribe(KafkaConsumer<byte[], byte[]> consumer, ConsumerRebalanceListener listener) {
            if (topics.startsWith("re:")) {
                if (kind.equals("consumer")) consumer.subscribe(new SubscriptionPattern(topics.substring(3)), listener);
                else consumer.subscribe(Pattern.compile(topics.substring(3)), listener);
            } else {
                consumer.subscribe(List.of(topics.split(",")), listener);
            }
        }
    }
}
