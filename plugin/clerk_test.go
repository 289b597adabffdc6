package plugin

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"out_kafka_reconnect/plugin/chunk"
	"out_kafka_reconnect/plugin/chunk/chunktest"
	"out_kafka_reconnect/plugin/delivery"
	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// The verdicts of brokers that these tests need.
var (
	invalidRecord = reconnect.Failure{Class: fsm.ClassRecord, Code: 87, Text: "Broker: invalid record"}
	tooLarge      = reconnect.Failure{Class: fsm.ClassRecord, Code: 10, Text: "Broker: Message size too large"}
	unknownTopic  = reconnect.Failure{Class: fsm.ClassTopic, Code: 3, Text: "Broker: Unknown topic or partition"}
)

// rejects makes the brokers refuse record number 3 for good.
func rejects(m reconnecttest.Message) *reconnect.Failure {
	if m.Topic == "fluent-bit" && strings.Contains(m.Value, `"3"`) {
		return &invalidRecord
	}
	return nil
}

// fileLetter is a line of a dead-letter file, as far as these tests look at it.
type fileLetter struct {
	Kind, Reason, Topic, Tag, Value string
	Code                            int
}

// lettersIn reads a dead-letter file.
func lettersIn(t *testing.T, path string) []fileLetter {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []fileLetter
	for line := range bytes.Lines(text) {
		var l fileLetter
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		list = append(list, l)
	}
	return list
}

// inTopic lists the values that were stored in a topic.
func (b *bench) inTopic(topic string) []string {
	var values []string
	for _, m := range b.net.Messages() {
		if m.Topic == topic {
			values = append(values, m.Value)
		}
	}
	return values
}

// obstruct puts a file where the directory of another one should be, so that nothing can be written there, not by root
// either; the function that it returns mends that.
func obstruct(t *testing.T, file string) (mend func()) {
	t.Helper()
	dir := filepath.Dir(file)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
	}
}

// letterFile is a path whose directory can be obstructed.
func letterFile(t *testing.T) string { return filepath.Join(t.TempDir(), "letters", "dead.jsonl") }

const rejected3 = `{"@timestamp":1700000000.0,"seq":"3"}`

func TestClerk_LettersGoToBothTargets(t *testing.T) {
	path := letterFile(t)
	inBubble(t, settings{"dead_letter_file": path, "dead_letter_topic": "dead"}, func(b *bench) {
		b.net.Reject = rejects
		b.flush(records(1, 5), true, OK)
		b.wantStored(5)
		if got := b.inTopic("dead"); len(got) != 1 || got[0] != rejected3 {
			t.Errorf("in the topic: %q", got)
		}
		want := fileLetter{"rejected_by_broker", "Broker: invalid record", "fluent-bit", "tag", rejected3, 87}
		if got := lettersIn(t, path); len(got) != 1 || got[0] != want {
			t.Errorf("in the file: %+v", got)
		}
		if st := b.courier.Status(); st.Acked != 4 || st.Letters != 1 || b.clerk.written.Load() != 1 || st.Queued != 0 {
			t.Errorf("%+v, %d in the file", st, b.clerk.written.Load())
		}
		if b.counts.rejectedByKind()["rejected_by_broker"] != 1 || b.host.count("dead_letters=true") != 1 {
			t.Errorf("log %q", b.host.lines)
		}
	})
}

// The chunk is complete only when the letter is in the topic, which somebody has to make.
func TestClerk_WaitsForItsTopic(t *testing.T) {
	inBubble(t, settings{"dead_letter_topic": "dead", "on_topic_error": "dead_letter", "unknown_topic_wait": "1s"}, func(b *bench) {
		var made atomic.Bool
		b.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			if m.Topic == "dead" && !made.Load() {
				return &unknownTopic
			}
			return rejects(m)
		}
		b.flush(records(1, 5), true, Retry)
		b.flush(records(10, 5), true, OK) // others are not held up
		time.Sleep(10 * time.Minute)
		b.flush(records(1, 5), true, Retry)
		made.Store(true)
		time.Sleep(6 * time.Second)
		b.wantStored(10)
		b.flush(records(1, 5), true, OK)
		b.wantStored(10)
	})
}

// The limit of a topic is not known to the client: a letter is cut until it fits.
func TestClerk_CutsALetterThatItsTopicRefuses(t *testing.T) {
	inBubble(t, settings{"dead_letter_topic": "dead"}, func(b *bench) {
		b.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			if len(m.Value) > 4000 {
				return &tooLarge
			}
			return nil
		}
		b.flush(append(records(1, 5), record(strings.Repeat("x", 100_000))...), true, OK)
		b.wantStored(6)
		got := b.inTopic("dead")
		if len(got) != 1 || len(got[0]) < 1000 || !strings.HasPrefix(got[0], `{"@timestamp":1700000000.0,"seq":"xxx`) {
			t.Errorf("%d letters: %.80q", len(got), got)
		}
		if b.host.count("ERROR") != 0 {
			t.Errorf("log %q", b.host.lines)
		}
	})
}

// What the dead-letter topic refuses for another reason, or however small it is, ends in one line: there is no third place.
func TestClerk_TellsOfALetterThatIsRefused(t *testing.T) {
	for name, verdict := range map[string]*reconnect.Failure{"invalid": &invalidRecord, "too large": &tooLarge} {
		inBubble(t, settings{"dead_letter_topic": "dead"}, func(b *bench) {
			b.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
				if m.Topic == "dead" {
					return verdict
				}
				return rejects(m)
			}
			b.flush(records(1, 5), true, OK)
			b.wantStored(4)
			if n := b.host.count("ERROR [test] dead letters were refused by the dead-letter topic count=1 topic=dead"); n != 1 {
				t.Errorf("%s: %d lines; log %q", name, n, b.host.lines)
			}
			if st := b.courier.Status(); st.Receipts != 0 || st.Open != 0 || st.Queued != 0 || st.Letters != 0 {
				t.Errorf("%s: %+v", name, st)
			}
		})
	}
}

// A disk that is full for a while: the letters wait, and so does the chunk.
func TestClerk_TriesAFileAgain(t *testing.T) {
	path := letterFile(t)
	inBubble(t, settings{"dead_letter_file": path, "dead_letter_topic": "dead"}, func(b *bench) {
		b.net.Reject = rejects
		mend := obstruct(t, path)
		b.flush(records(1, 5), true, Retry)
		b.flush(records(10, 5), true, OK) // others are not held up
		time.Sleep(30 * time.Second)
		b.flush(records(1, 5), true, Retry)
		b.wantStored(9)
		if n := b.host.count("dead letters could not be written to the file and will be tried again"); n != 1 {
			t.Errorf("%d lines within a minute; log %q", n, b.host.lines)
		}
		mend()
		time.Sleep(fileRetryMax)
		b.wantStored(10)
		b.flush(records(1, 5), true, OK)
		if got := lettersIn(t, path); len(got) != 1 || got[0].Value != rejected3 {
			t.Errorf("%+v", got)
		}
	})
}

// A file that takes nothing must not take the room of the good records.
func TestClerk_AFullDiskLeavesRoom(t *testing.T) {
	path := letterFile(t)
	inBubble(t, settings{"dead_letter_file": path, "queue_limit": "1MiB"}, func(b *bench) {
		b.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			if strings.Contains(m.Value, "zzz") {
				return &reconnect.Failure{Class: fsm.ClassRecord, Code: 10, Refused: true}
			}
			return nil
		}
		mend := obstruct(t, path)
		var bad [][]byte
		for i := range 20 { // four times the room
			bad = append(bad, record(fmt.Sprint(i, strings.Repeat("z", 200_000))))
			b.flush(bad[i], true, Retry)
		}
		b.flush(records(1, 100), true, OK)
		mend()
		for len(bad) > 0 {
			bad = slices.DeleteFunc(bad, func(c []byte) bool { return b.Flush(c, "tag", true) == OK })
			time.Sleep(time.Second)
		}
		if got := lettersIn(t, path); len(got) != 20 {
			t.Errorf("%d letters", len(got))
		}
		if n := b.counts.rejectedInAll(); n != 20 {
			t.Errorf("%d records are counted", n)
		}
		time.Sleep(2 * quietPeriod)
		if n := b.host.sum(rejectedLine("too_large")); n != 20 {
			t.Errorf("the lines tell of %d records", n)
		}
	})
}

// An instance that ends before its letters are written does not say that the chunk is done: it comes back.
func TestClerk_CloseLeavesTheChunkToFluentBit(t *testing.T) {
	path := letterFile(t)
	inBubble(t, settings{"dead_letter_file": path}, func(b *bench) {
		b.net.Reject = rejects
		obstruct(t, path)
		done := make(chan Result)
		go func() { done <- b.Flush(records(1, 5), "tag", true) }()
		time.Sleep(3 * time.Second)
		start := time.Now()
		b.Close()
		if r := <-done; r != Retry {
			t.Errorf("the flush got %v", r)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("the end took %v", took)
		}
		if left := b.clerk.close(); len(left) != 1 || len(left[0].list) != 1 {
			t.Errorf("left: %+v", left)
		}
	})
}

// A hot reload with another file: what could not be written to the old one goes to the new one.
func TestClerk_LettersAreInherited(t *testing.T) {
	old, path := letterFile(t), letterFile(t)
	inProcess(t, func(p *process) {
		p.net.Reject = rejects
		a := p.start(settings{"dead_letter_file": old})
		obstruct(t, old)
		a.want(Retry, records(1, 5))
		a.endByReload()
		b := p.start(settings{"dead_letter_file": path})
		b.want(OK, records(1, 5))
		p.wantStored(4)
		if got := lettersIn(t, path); len(got) != 1 || got[0].Value != rejected3 {
			t.Errorf("%+v", got)
		}
	})
}

// The file failed within a list of letters, and a hot reload follows: those that are in the file are
// not written again, even if there is less room now.
func TestClerk_AnHeirGoesOnWithinAList(t *testing.T) {
	path := letterFile(t)
	inProcess(t, func(p *process) {
		p.net.Reject = func(reconnecttest.Message) *reconnect.Failure {
			return &reconnect.Failure{Class: fsm.ClassRecord, Code: 10, Refused: true}
		}
		big := func(text string) []byte {
			return append(record(strings.Repeat(text, 200_000)), record(strings.Repeat(text, 200_000))...)
		}
		a := p.start(settings{"dead_letter_file": path, "queue_limit": "4MiB"})
		mend := obstruct(t, path)
		a.want(Retry, big("a"))
		a.want(Retry, big("b"))
		time.Sleep(time.Second)
		a.clerk.close()[1].inFile = 1
		a.endByReload()
		mend()
		b := p.start(settings{"dead_letter_file": path, "queue_limit": "1MiB", "dead_letter_file_keep": "3"})
		b.want(OK, big("a"))
		b.want(OK, big("b"))
		if got := lettersIn(t, path); len(got) != 3 {
			t.Errorf("%d letters", len(got))
		}
	})
}

// Records are dropped or become letters by their class, whatever the code says of them.
func TestClerk_DropsEveryKindThatAnOperatorCanFix(t *testing.T) {
	path := letterFile(t)
	inBubble(t, settings{"dead_letter_file": path, "on_topic_error": "drop", "unknown_topic_wait": "30s"}, func(b *bench) {
		failures := map[string]*reconnect.Failure{
			`"1"`: {Class: fsm.ClassAuthorization, Code: 29}, `"2"`: {Class: fsm.ClassAuthorization, Code: 31},
			`"3"`: &unknownTopic, `"4"`: {Class: fsm.ClassRecord, Code: 87, Refused: true},
		}
		b.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			for text, f := range failures {
				if strings.Contains(m.Value, text) {
					return f
				}
			}
			return nil
		}
		b.flush(records(1, 5), true, Retry)
		time.Sleep(time.Minute)
		b.flush(records(1, 5), true, OK)
		b.wantStored(1)
		if got := lettersIn(t, path); len(got) != 1 || got[0].Kind != "rejected_by_broker" {
			t.Errorf("%+v", got)
		}
		if n := b.counts.rejectedInAll(); n != 4 {
			t.Errorf("%d records are counted", n)
		}
	})
}

// The dead-letter topic was misspelt, and a reload corrects it.
func TestClerk_LettersGoToACorrectedTopic(t *testing.T) {
	inProcess(t, func(p *process) {
		p.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			if m.Topic == "typo" {
				return &unknownTopic
			}
			return rejects(m)
		}
		a := p.start(settings{"dead_letter_topic": "typo"})
		a.want(Retry, records(1, 5))
		a.endByReload()
		b := p.start(settings{"dead_letter_topic": "dead"})
		time.Sleep(time.Second)
		b.want(OK, records(1, 5))
		if got := (&bench{net: p.net}).inTopic("dead"); len(got) != 1 {
			t.Errorf("letters %q", got)
		}
		if st := b.courier.Status(); len(st.Topics) != 0 || st.Queued != 0 {
			t.Errorf("%+v", st)
		}
	})
}

// The dead-letter topic was misspelt, and a reload corrects it while the letter is in the client's hands: the first report
// that a topic is unknown takes long.
func TestClerk_LettersInTheClientsHandsGoToTheNewTarget(t *testing.T) {
	path := letterFile(t)
	for name, target := range map[string]settings{
		"topic": {"dead_letter_topic": "dead"}, "file": {"dead_letter_file": path}, "none": {},
	} {
		inProcess(t, func(p *process) {
			p.net.AckDelay = 2 * time.Second
			p.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
				if m.Topic == "typo" {
					return &unknownTopic
				}
				return rejects(m)
			}
			a := p.start(settings{"dead_letter_topic": "typo"})
			a.want(Retry, records(1, 5))
			time.Sleep(5 * time.Second) // refused in company, then alone, and the letter is under way
			if st := a.courier.Status(); a.sup.Outstanding() != 1 || len(st.Topics) != 0 {
				t.Fatalf("%s: %d in the client's hands, %+v", name, a.sup.Outstanding(), st)
			}
			a.endByReload()
			b := p.start(target)
			time.Sleep(30 * time.Second)
			b.want(OK, records(1, 5))
			letters, dropped := len((&bench{net: p.net}).inTopic("dead")), p.host.count(droppedLine("rejected_by_broker")+" count=1")
			if name == "file" {
				letters = len(lettersIn(t, path))
			}
			if name != "none" && (letters != 1 || dropped != 0) || name == "none" && (letters != 0 || dropped != 1) {
				t.Errorf("%s: %d letters, %d lines; log %q", name, letters, dropped, p.host.lines)
			}
			if st := b.courier.Status(); len(st.Topics) != 0 || st.Queued != 0 || st.Receipts != 0 {
				t.Errorf("%s: %+v", name, st)
			}
		})
	}
}

// A letter that waits for a misspelt topic goes to a file that a reload sets instead.
func TestClerk_LettersOfATopicGoToAFile(t *testing.T) {
	path := letterFile(t)
	inProcess(t, func(p *process) {
		p.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			if m.Topic == "typo" {
				return &unknownTopic
			}
			return rejects(m)
		}
		a := p.start(settings{"dead_letter_topic": "typo"})
		a.want(Retry, records(1, 5))
		time.Sleep(time.Second)
		a.endByReload()
		b := p.start(settings{"dead_letter_file": path})
		b.want(OK, records(1, 5))
		if got := lettersIn(t, path); len(got) != 1 || got[0].Value != rejected3 {
			t.Errorf("%+v", got)
		}
	})
}

// A reload takes the target away from letters that a full disk has kept waiting: they are told of, once.
func TestClerk_LettersWithoutATargetAreTold(t *testing.T) {
	path := letterFile(t)
	inProcess(t, func(p *process) {
		p.net.Reject = rejects
		a := p.start(settings{"dead_letter_file": path})
		obstruct(t, path)
		a.want(Retry, records(1, 5))
		a.endByReload()
		b := p.start(nil)
		b.want(OK, records(1, 5))
		if n := p.host.count(droppedLine("rejected_by_broker") + " count=1"); n != 1 {
			t.Errorf("%d lines; log %q", n, p.host.lines)
		}
	})
}

// What is rejected while a reload is under way may still come to the clerk of before.
func TestClerk_LettersThatComeToAnEndedClerkGoToItsHeir(t *testing.T) {
	old, path := letterFile(t), letterFile(t)
	inProcess(t, func(p *process) {
		a := p.start(settings{"dead_letter_file": old})
		a.endByReload()
		p.start(settings{"dead_letter_file": path})
		r := a.courier.Post(delivery.Place{First: true}, "tag", &reconnect.Batch{}, 1, 0)
		a.keepUnusable(r, "tag", []byte("x"), []unusable{{kind: "undecodable", reason: chunk.ErrNotRecord, len: 1}})
		time.Sleep(time.Second)
		if got := lettersIn(t, path); len(got) != 1 || !r.Complete() {
			t.Errorf("%+v", got)
		}
	})
}

// A letter that waits for its topic goes on too, under other settings.
func TestClerk_LettersForTheTopicAreInherited(t *testing.T) {
	inProcess(t, func(p *process) {
		var made atomic.Bool
		p.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			if m.Topic == "dead" && !made.Load() {
				return &unknownTopic
			}
			return rejects(m)
		}
		a := p.start(settings{"dead_letter_topic": "dead"})
		a.want(Retry, records(1, 5))
		a.endByReload()
		b := p.start(settings{"dead_letter_topic": "dead", "reconnect_backoff_max": "2s"})
		b.want(Retry, records(1, 5))
		made.Store(true)
		time.Sleep(5 * time.Second)
		b.want(OK, records(1, 5))
		p.wantStored(5)
	})
}

// Entries of a chunk that are no records are set aside as Fluent Bit had them.
func TestClerk_KeepsUndecodableEntries(t *testing.T) {
	path := letterFile(t)
	inBubble(t, settings{"dead_letter_file": path}, func(b *bench) {
		mixed := append(records(1, 2), 0x2a)
		mixed = append(mixed, records(3, 2)...)
		b.flush(mixed, true, OK)
		b.wantStored(4)
		b.flush(chunktest.Str(nil, "no record at all"), true, OK)
		got := lettersIn(t, path)
		if len(got) != 2 || got[0].Kind != "undecodable" || got[0].Topic != "" || got[0].Tag != "tag" || got[0].Reason == "" {
			t.Fatalf("%+v", got)
		}
		value, err := base64.StdEncoding.DecodeString(got[1].Value)
		if got[0].Value != "*" || err != nil || !bytes.Equal(value, chunktest.Str(nil, "no record at all")) {
			t.Errorf("values %q and %q", got[0].Value, got[1].Value)
		}
		if n := b.counts.rejectedByKind()["undecodable"]; n != 2 {
			t.Errorf("%d counted", n)
		}
	})
}

// Without a target a chunk in which nothing is a record is Fluent Bit's to deal with.
func TestClerk_WithoutATargetUndecodableEntriesAreTold(t *testing.T) {
	inBubble(t, nil, func(b *bench) {
		b.flush(append(records(1, 2), 0x2a), true, OK)
		b.flush(chunktest.Str(nil, "no record at all"), true, Error)
		b.wantStored(2)
		if n := b.counts.rejectedByKind()["undecodable"]; n != 2 {
			t.Errorf("%d counted", n)
		}
	})
}

// on_topic_error says what becomes of records that an operator could help.
func TestClerk_TopicErrors(t *testing.T) {
	for policy, want := range map[string]int{"retry": 0, "dead_letter": 1, "drop": 0} {
		path := letterFile(t)
		inBubble(t, settings{"dead_letter_file": path, "on_topic_error": policy, "unknown_topic_wait": "30s"}, func(b *bench) {
			b.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
				if strings.Contains(m.Value, `"3"`) {
					return &unknownTopic
				}
				return nil
			}
			b.flush(records(1, 5), true, Retry)
			time.Sleep(20 * time.Second)
			b.flush(records(1, 5), true, Retry) // a topic that is just being made is unknown for a while
			time.Sleep(20 * time.Second)
			answer := OK
			if policy == "retry" {
				answer = Retry
			}
			b.flush(records(1, 5), true, answer)
			if got := lettersIn(t, path); len(got) != want {
				t.Errorf("%s: %+v", policy, got)
			}
			b.wantStored(4)
		})
	}
}
