// A consumer of another library than Java's and librdkafka, told what to do by lines on standard input:
//
//	gomember LIBRARY BOOTSTRAP NAME PROTOCOL GROUP [instance-id=ID] [poll-interval-ms=N]
//
// LIBRARY is franz (franz-go: classic, consumer, share), sarama or kafkago (classic). Commands: `stall SECONDS` (the
// application takes nothing), `leave`. What happens to it is said as JSON lines.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	topic     = "orders"
	session   = 10 * time.Second
	heartbeat = 2 * time.Second
	commits   = 2 * time.Second
	onePoll   = 100 * time.Millisecond
)

type member struct {
	boot                  []string
	name, protocol, group string
	seat                  string
	pollInterval          time.Duration
	commands              chan []string
	saying                sync.Mutex
}

func main() {
	if len(os.Args) < 6 {
		fmt.Fprintln(os.Stderr, "expected LIBRARY BOOTSTRAP NAME PROTOCOL GROUP [instance-id=ID] [poll-interval-ms=N]")
		os.Exit(2)
	}
	it := &member{boot: strings.Split(os.Args[2], ","), name: os.Args[3], protocol: os.Args[4], group: os.Args[5],
		pollInterval: time.Minute, commands: make(chan []string, 100)}
	for _, setting := range os.Args[6:] {
		key, value, _ := strings.Cut(setting, "=")
		switch key {
		case "instance-id":
			it.seat = value
		case "poll-interval-ms":
			ms, _ := strconv.Atoi(value)
			it.pollInterval = time.Duration(ms) * time.Millisecond
		}
	}
	go it.listen()
	libraries := map[string]func(*member){"franz": franz, "sarama": ofSarama, "kafkago": ofKafkaGo}
	run, known := libraries[os.Args[1]]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: no such library; expected franz, sarama or kafkago\n", os.Args[1])
		os.Exit(2)
	}
	run(it)
}

func (it *member) listen() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) > 0 {
			it.commands <- words
		}
	}
	it.commands <- []string{"leave"} // nobody commands any more
}

func (it *member) say(what string, more ...string) {
	it.saying.Lock()
	defer it.saying.Unlock()
	line, _ := json.Marshal(map[string]any{"at_ms": time.Now().UnixMilli(), "what": what, "more": more})
	fmt.Println(string(line))
}

// obey polls until it is told to leave; a stall is a time without polls.
func (it *member) obey(poll, leave func()) {
	for {
		select {
		case words := <-it.commands:
			switch words[0] {
			case "stall":
				it.say("stalls")
				time.Sleep(seconds(words[1]))
				it.say("polls again")
			case "leave":
				leave()
				it.say("left")
				return
			}
		default:
			poll()
		}
	}
}

func seconds(word string) time.Duration {
	found, _ := strconv.ParseFloat(word, 64)
	return time.Duration(found * float64(time.Second))
}

func partitions(byTopic map[string][]int32) []string {
	var found []string
	for name, numbers := range byTopic {
		for _, number := range numbers {
			found = append(found, fmt.Sprintf("%s-%d", name, number))
		}
	}
	sort.Strings(found)
	return found
}

func franz(it *member) {
	ctx := context.Background()
	settings := []kgo.Opt{kgo.SeedBrokers(it.boot...), kgo.ClientID(it.name), kgo.ConsumeTopics(topic)}
	if it.protocol == "share" {
		settings = append(settings, kgo.ShareGroup(it.group))
	} else {
		heard := func(what string) func(context.Context, *kgo.Client, map[string][]int32) {
			return func(_ context.Context, _ *kgo.Client, which map[string][]int32) { it.say(what, partitions(which)...) }
		}
		settings = append(settings, kgo.ConsumerGroup(it.group), kgo.AutoCommitInterval(commits),
			kgo.RebalanceTimeout(it.pollInterval), kgo.OnPartitionsAssigned(heard("assigned")),
			kgo.OnPartitionsRevoked(heard("revoked")), kgo.OnPartitionsLost(heard("lost")))
		if it.seat != "" {
			settings = append(settings, kgo.InstanceID(it.seat))
		}
		if it.protocol == "consumer" {
			// The library asks for this word, as a plain string, before it speaks the newer protocol.
			ctx = context.WithValue(ctx, "opt_in_kafka_next_gen_balancer_beta", true) //nolint:staticcheck
			settings = append(settings, kgo.WithContext(ctx))
		} else {
			settings = append(settings, kgo.SessionTimeout(session), kgo.HeartbeatInterval(heartbeat))
		}
	}
	client, err := kgo.NewClient(settings...)
	if err != nil {
		it.say("error", err.Error())
		return
	}
	it.say("started")
	it.obey(func() {
		once, cancel := context.WithTimeout(ctx, onePoll)
		defer cancel()
		for _, failed := range client.PollFetches(once).Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) {
				it.say("error", failed.Err.Error())
			}
		}
	}, client.Close)
}

// taker takes records as sarama hands them out, and none while `held` is held.
type taker struct {
	it   *member
	held *sync.RWMutex
}

func (one taker) Setup(own sarama.ConsumerGroupSession) error {
	one.it.say("assigned", partitions(own.Claims())...)
	return nil
}

func (one taker) Cleanup(sarama.ConsumerGroupSession) error {
	one.it.say("revoked")
	return nil
}

func (one taker) ConsumeClaim(own sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case record, more := <-claim.Messages():
			if !more {
				return nil
			}
			one.held.RLock()
			own.MarkMessage(record, "")
			one.held.RUnlock()
		case <-own.Context().Done():
			return nil
		}
	}
}

func ofSarama(it *member) {
	settings := sarama.NewConfig()
	settings.ClientID, settings.Version = it.name, sarama.V2_3_0_0
	settings.Consumer.Group.Session.Timeout, settings.Consumer.Group.Heartbeat.Interval = session, heartbeat
	settings.Consumer.Group.Rebalance.Timeout = it.pollInterval
	settings.Consumer.Group.InstanceId = it.seat
	settings.Consumer.Offsets.AutoCommit.Interval = commits
	group, err := sarama.NewConsumerGroup(it.boot, it.group, settings)
	if err != nil {
		it.say("error", err.Error())
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended, held := make(chan bool), &sync.RWMutex{}
	go func() {
		for ctx.Err() == nil {
			if err := group.Consume(ctx, []string{topic}, taker{it, held}); err != nil {
				it.say("error", err.Error())
				time.Sleep(time.Second)
			}
		}
		close(ended)
	}()
	it.say("started")
	for words := range it.commands {
		switch words[0] {
		case "stall":
			it.say("stalls")
			held.Lock()
			time.Sleep(seconds(words[1]))
			held.Unlock()
			it.say("polls again")
		case "leave":
			cancel()
			_ = group.Close()
			<-ended
			it.say("left")
			return
		}
	}
}

func ofKafkaGo(it *member) {
	reader := kafkago.NewReader(kafkago.ReaderConfig{Brokers: it.boot, GroupID: it.group, Topic: topic,
		SessionTimeout: session, HeartbeatInterval: heartbeat, CommitInterval: commits, RebalanceTimeout: it.pollInterval,
		Dialer: &kafkago.Dialer{ClientID: it.name, Timeout: session, DualStack: true}})
	it.say("started")
	it.obey(func() {
		once, cancel := context.WithTimeout(context.Background(), onePoll)
		defer cancel()
		if _, err := reader.ReadMessage(once); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			it.say("error", err.Error())
		}
	}, func() { _ = reader.Close() })
}
