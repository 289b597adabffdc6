package plugin

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// process is what outlives a hot reload: the registry, the network.
type process struct {
	t    *testing.T
	reg  *Registry
	net  *reconnecttest.Network
	host *host
	// crashed are the registries of processes that were killed.
	crashed []*Registry
	// before is what an earlier network has written.
	before []reconnecttest.Message
}

// section is one [OUTPUT] section in a pipeline.
type section struct {
	*Instance
	p       *process
	context uintptr
}

func inProcess(t *testing.T, f func(p *process)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &process{t: t, reg: &Registry{}, net: reconnecttest.NewNetwork("a:1"), host: &host{}}
		defer func() {
			for _, reg := range append(p.crashed, p.reg) {
				reg.CloseAll()
			}
			time.Sleep(time.Minute)
		}()
		f(p)
	})
}

// start makes a section as the root package does.
func (p *process) start(s settings) *section {
	p.t.Helper()
	cfg := decode(p.t, s)
	in, same := p.reg.Claim(cfg)
	if same {
		in.Resume(p.host, "test", "test")
	} else {
		heir := in
		var err error
		if in, err = New(Options{
			Config: cfg, Open: p.net.Open, Memory: reconnecttest.Memory{}, Relay: flblog.NewRelay(p.host, "test"), Name: "test", Heir: heir, Registry: p.reg,
		}); err != nil {
			p.t.Fatal(err)
		}
	}
	sec := &section{Instance: in, p: p, context: p.reg.Add(in)}
	time.Sleep(time.Second)
	return sec
}

// endByReload is the end of a pipeline for a hot reload, without what happens before.
func (s *section) endByReload() { s.p.reg.End(s.context, true) }

// deliver flushes as Fluent Bit does, until the chunk is done.
func (s *section) deliver(chunk []byte) {
	for s.Flush(chunk, "tag", true) != OK {
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *section) want(r Result, chunk []byte) {
	s.p.t.Helper()
	if got := s.Flush(chunk, "tag", false); got != r {
		s.p.t.Fatalf("flush: %v, want %v; log %q", got, r, s.p.host.lines)
	}
}

func (p *process) wantStored(n int) {
	p.t.Helper()
	wantOnce(p.t, append(slices.Clone(p.before), p.net.Messages()...), n)
}

// The section comes back unchanged: nothing is closed, receipts and what waits go on.
func TestReload_TheSameSectionGoesOn(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(nil)
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		p.net.Set(reconnecttest.Down)
		a.want(Retry, records(10, 5))
		start := time.Now()
		a.endByReload()
		if took := time.Since(start); took != 0 {
			t.Errorf("the exit took %v", took)
		}
		b := p.start(nil)
		if b.Instance != a.Instance || p.net.Opens() != 1 {
			t.Error("the client was made anew")
		}
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		p.wantStored(10)
		b.want(OK, records(1, 5))
		b.want(OK, records(10, 5))
		p.wantStored(10)
	})
}

// The counters of a section that comes back unchanged go on, that of the latency too.
func TestReload_TheLatencyGoesOn(t *testing.T) {
	addr := freeAddress(t)
	inRealTime := settings{"metrics_listen": addr}
	p := &process{t: t, reg: &Registry{}, net: reconnecttest.NewNetwork("a:1"), host: &host{}}
	defer p.reg.CloseAll()
	a := p.start(inRealTime)
	for i := range 3 {
		a.deliver(records(10*i, 1))
	}
	a.endByReload()
	b := p.start(inRealTime)
	b.deliver(records(100, 1))
	body := ""
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		// It is observed a moment after the flush has its answer.
		if body = scrape(t, addr); strings.Contains(body, `kafka_reconnect_ack_latency_seconds_count{instance="test"} 4`) {
			return
		}
	}
	t.Errorf("%s", body)
}

// So do those of a section that comes back with other settings, all of them.
func TestReload_TheCountersOfAnHeirGoOn(t *testing.T) {
	path := letterFile(t)
	inProcess(t, func(p *process) {
		s := settings{"dead_letter_file": path}
		p.net.Reject = rejects
		a := p.start(s)
		a.deliver(records(1, 5))
		p.net.Set(reconnecttest.Down)
		time.Sleep(10 * time.Second)
		a.want(Retry, records(10, 5))
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		before := a.Metrics()
		a.endByReload()
		s["reconnect_backoff_max"] = "2s"
		b := p.start(s)
		before.ConnectSuccesses++
		if after := b.Metrics(); !reflect.DeepEqual(before, after) || before.Outages != 1 || before.DeadLetters["file"] != 1 {
			t.Errorf("%+v, before %+v", after, before)
		}
		b.want(OK, records(10, 5))
		p.reg.CloseAll()
		time.Sleep(time.Second)
		const line = "stopped chunks_ok=2 chunks_retried=1 chunks_undecodable=0 records_acknowledged=9 records_rejected=1 dead_letters_in_topic=0 dead_letters_in_file=1"
		if p.host.count(line) != 1 {
			t.Errorf("log %q", p.host.lines)
		}
	})
}

// The section comes back with another password, say: a new client delivers what waits.
func TestReload_OtherSettingsInherit(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(nil)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		a.want(Retry, records(1, 5))
		a.endByReload()
		b := p.start(settings{"reconnect_backoff_max": "2s"})
		if b.Instance == a.Instance || p.net.Opens() != 2 {
			t.Errorf("%d clients", p.net.Opens())
		}
		p.net.Set(reconnecttest.Serving)
		time.Sleep(5 * time.Second)
		p.wantStored(5)
		b.want(OK, records(1, 5))
		p.wantStored(5)
	})
}

// Each client tells of the outage once. That chunks are taken over, and that records came back, is told
// once a minute, however many reloads there are.
func TestReload_OtherSettingsInAnOutageTellLittle(t *testing.T) {
	inProcess(t, func(p *process) {
		b := p.start(settings{"reload_timeout": "5s"})
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		const reloads = 5
		for n := range reloads {
			b.want(Retry, records(100*n, 5))
			p.reg.ExpectReload()
			time.Sleep(5 * time.Second)
			b.want(OK, records(100*n, 5))
			b.endByReload()
			b = p.start(settings{"reload_timeout": "5s", "reconnect_backoff_max": fmt.Sprintf("%ds", n+2)})
		}
		time.Sleep(5 * time.Second)
		outages := p.host.count("all brokers down")
		if others := p.host.count("WARN") + p.host.count("ERROR") - outages; outages != 1+reloads || others > 2 {
			t.Errorf("%d lines of the outage, %d others: %q", outages, others, p.host.lines)
		}
		time.Sleep(quietPeriod)
		if n := p.host.sum("chunks are taken over"); n != reloads {
			t.Errorf("the lines tell of %d chunks", n)
		}
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		p.wantStored(5 * reloads)
	})
}

// A broker is frozen with records in flight, and the section comes back with another setting: what
// was in flight is written once, as the client that sent it finishes it.
func TestReload_OtherSettingsLetTheOldClientFinish(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(nil)
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		a.endByReload()
		b := p.start(settings{"reconnect_backoff_max": "2s"})
		time.Sleep(time.Minute)
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		p.wantStored(5)
		b.want(OK, records(1, 5))
		if st := b.courier.Status(); st.Doubtful != 0 {
			t.Errorf("%+v", st)
		}
		select {
		case <-a.gone:
		default:
			t.Error("the old client lives on with nothing to do")
		}
	})
}

// The section comes back with another topic: its chunks are written there, and what only
// the old one holds is still written to the old one.
func TestReload_AnotherDestinationStartsAnew(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(nil)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		a.want(Retry, records(1, 5))
		p.reg.ExpectReload()
		time.Sleep(10 * time.Second)
		a.want(OK, records(10, 5)) // taken over
		a.endByReload()
		b := p.start(settings{"topics": "other"})
		b.want(Retry, records(1, 5))
		time.Sleep(2 * parkedFor)
		p.net.Set(reconnecttest.Serving)
		time.Sleep(2 * parkedFor)
		topics := map[string]int{}
		for _, m := range p.net.Messages() {
			topics[m.Topic]++
		}
		if topics["other"] != 5 || topics["fluent-bit"] != 10 {
			t.Errorf("written: %v", topics)
		}
		if a.end() {
			t.Error("the old instance lives on with nothing to do")
		}
	})
}

// Fluent Bit does not end a pipeline before every chunk is answered for. So when
// reload_timeout is over, chunks are taken over, and answered with OK.
func TestReload_ChunksAreTakenOver(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(settings{"queue_limit": "1MiB"})
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		a.want(Retry, records(1, 1000)) // waits
		a.want(Retry, records(2000, 8000))
		p.reg.ExpectReload()
		a.want(Retry, records(1, 1000))
		time.Sleep(10 * time.Second)
		a.want(OK, records(1, 1000))
		a.want(OK, records(2000, 8000)) // there was no room for it before
		if st := a.courier.Status(); st.Owned != 2 {
			t.Errorf("%+v", st)
		}
		a.endByReload()
		b := p.start(settings{"queue_limit": "1MiB"})
		b.want(Retry, records(20_000, 1)) // the reload is over
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		b.want(OK, records(20_000, 1))
		p.wantStored(9001)
		if st := b.courier.Status(); st.Owned != 0 || st.Receipts != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestReload_WhatDoesNotFitKeepsWaiting(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(settings{"queue_limit": "1MiB", "custody_limit": "1KiB"})
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		a.want(Retry, records(1, 4000))
		p.reg.ExpectReload()
		time.Sleep(10 * time.Second)
		a.want(Retry, records(10_000, 4000))
		// A reload that is not over by then was refused.
		time.Sleep(takeOverFor)
		a.want(Retry, records(1, 4000))
	})
}

// The reload waits for what does not fit, however long: it is taken over once there is room.
func TestReload_WhatDoesNotFitIsTakenOverLater(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(settings{"queue_limit": "1MiB", "custody_limit": "1KiB"})
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		p.reg.ExpectReload()
		time.Sleep(10 * time.Second)
		a.want(OK, records(1, 3500))
		for range 5 * takeOverFor / time.Second {
			a.want(Retry, records(10_000, 3500))
			time.Sleep(time.Second)
		}
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		a.want(OK, records(10_000, 3500))
		// From then on it ends as ever.
		time.Sleep(takeOverFor)
		a.want(Retry, records(20_000, 1))
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		p.wantStored(7001)
	})
}

// With custody_limit 0 nothing is taken over, though it would fit into queue_limit.
func TestReload_WithoutCustodyNothingIsTakenOver(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(settings{"custody_limit": "0"})
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		p.reg.ExpectReload()
		for range 20 {
			a.want(Retry, records(1, 5))
			time.Sleep(time.Second)
		}
		if st := a.courier.Status(); st.Owned != 0 {
			t.Errorf("%+v", st)
		}
	})
}

const refusedLine = "Fluent Bit has refused it"

// After a refused reload the pipeline runs on, and new chunks come: nothing is taken over.
func TestReload_ARefusedOneTakesNothingOver(t *testing.T) {
	for name, s := range map[string]settings{"with room": nil, "without room": {"queue_limit": "1MiB"}} {
		t.Run(name, func(t *testing.T) {
			inProcess(t, func(p *process) {
				a := p.start(s)
				p.net.Set(reconnecttest.Down)
				time.Sleep(5 * time.Second)
				if s != nil {
					a.want(Retry, records(1_000_000, 8000))
				}
				p.reg.ExpectReload()
				for n := range 40 {
					for chunk := range n + 1 {
						a.want(Retry, records(10*chunk, 5))
					}
					time.Sleep(time.Second)
				}
				if st := a.courier.Status(); st.Owned != 0 {
					t.Errorf("%+v", st)
				}
				if n := p.host.count(refusedLine); n != 1 {
					t.Errorf("%d lines; log %q", n, p.host.lines)
				}
				// The next one is not refused.
				p.reg.ExpectReload()
				a.want(Retry, records(0, 5))
				time.Sleep(10 * time.Second)
				a.want(OK, records(0, 5))
			})
		})
	}
}

// A drain: every chunk comes once a second, some do not fit before they are taken over, and
// while a broker still answers new ones come in the place of those that are done.
func TestReload_ADrainIsNotTakenForARefusal(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(settings{"queue_limit": "1MiB"})
		p.reg.ExpectReload()
		for n := range 5 {
			time.Sleep(time.Second)
			a.deliver(records(1_000_000+n, 1))
		}
		p.net.Set(reconnecttest.Down)
		var waiting [][]byte
		for n := range 20 {
			waiting = append(waiting, records(10_000*n, 1000))
		}
		for range 5 {
			for _, chunk := range waiting {
				a.want(Retry, chunk)
			}
			time.Sleep(time.Second)
		}
		for _, chunk := range waiting {
			a.want(OK, chunk)
		}
		if st := a.courier.Status(); st.Owned != len(waiting) || p.host.count(refusedLine) != 0 {
			t.Errorf("%+v; log %q", st, p.host.lines)
		}
		a.endByReload()
		p.start(settings{"queue_limit": "1MiB"})
		p.net.Set(reconnecttest.Serving)
		time.Sleep(20 * time.Second)
		p.wantStored(5 + 1000*len(waiting))
	})
}

// A flush that began before the announcement and returns late is of no new chunk.
func TestReload_AChunkThatReturnsLateIsNotNew(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(nil)
		p.reg.ExpectReload()
		chunk := records(1, 5)
		a.reload.returns(chunk, "tag")
		p.net.Set(reconnecttest.Down)
		time.Sleep(9 * time.Second)
		a.want(Retry, chunk)
		time.Sleep(time.Second)
		a.want(OK, chunk)
	})
}

// Once a reload was refused, Fluent Bit says "by reload" when it stops too.
func TestReload_TheEndOfTheProcessClosesWhatIsParked(t *testing.T) {
	inProcess(t, func(p *process) {
		a, b := p.start(nil), p.start(settings{"topics": "other"})
		p.net.Set(reconnecttest.Mute)
		a.want(Retry, records(1, 5))
		b.want(Retry, records(10, 5))
		a.endByReload()
		b.endByReload()
		p.net.Set(reconnecttest.Serving)
		p.reg.CloseParked()
		p.wantStored(10)
		if a.end() || b.end() {
			t.Error("something lives on")
		}
		p.reg.CloseParked() // again
	})
}

// The bytes of a chunk whose topic is in trouble are given up when there are many, but not
// those of one that Fluent Bit has no longer.
func TestReload_AChunkOfABadTopicKeepsItsBytes(t *testing.T) {
	inProcess(t, func(p *process) {
		var denied atomic.Bool
		denied.Store(true)
		p.net.Reject = func(reconnecttest.Message) *reconnect.Failure {
			if denied.Load() {
				return &reconnect.Failure{Class: fsm.ClassAuthorization, Text: "topic authorization failed"}
			}
			return nil
		}
		a := p.start(settings{"queue_limit": "1MiB"})
		a.want(Retry, records(1, 1))
		a.want(Retry, records(2, 1))
		p.reg.ExpectReload()
		time.Sleep(10 * time.Second)
		a.want(OK, records(10, 4000))
		denied.Store(false)
		time.Sleep(10 * time.Second)
		p.wantStored(4002)
	})
}

// A stop after a reload tells what it loses.
func TestReload_AStopTellsWhatIsLost(t *testing.T) {
	inProcess(t, func(p *process) {
		a := p.start(nil)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		p.reg.ExpectReload()
		time.Sleep(10 * time.Second)
		a.want(OK, records(1, 5))
		p.reg.End(a.context, false)
		if n := p.host.count("could not be delivered before the end and are lost chunks=1"); n != 1 {
			t.Errorf("log %q", p.host.lines)
		}
	})
}

// Fluent Bit ends one instance after the other; a broker that hangs must not cost each of
// them its shutdown_timeout.
func TestRegistry_SeveralEndAtOnce(t *testing.T) {
	inProcess(t, func(p *process) {
		var all []*section
		for _, topic := range []string{"a", "b", "c", "d", "e"} {
			all = append(all, p.start(settings{"topics": topic}))
		}
		p.net.Set(reconnecttest.Mute)
		for i, s := range all {
			s.want(Retry, records(10*i, 5))
		}
		start := time.Now()
		for _, s := range all {
			p.reg.End(s.context, false)
		}
		if took := time.Since(start); took < 2*time.Second || took > 3*time.Second+100*time.Millisecond {
			t.Errorf("five exits took %v", took)
		}
	})
}

func TestReload_TheLastExitClosesWhatIsParked(t *testing.T) {
	inProcess(t, func(p *process) {
		a, b := p.start(nil), p.start(settings{"topics": "other"})
		a.endByReload()
		p.reg.End(b.context, false)
		if a.end() || b.end() {
			t.Error("something lives on")
		}
		p.reg.End(b.context, false) // again
		p.reg.End(0, true)          // never made
	})
}

func TestRegistry(t *testing.T) {
	var r Registry
	a, b := &Instance{}, &Instance{}
	if r.Number() != 0 {
		t.Error("numbers count from 0")
	}
	ca := r.Add(a)
	if r.Number() != 1 {
		t.Error("and up")
	}
	cb := r.Add(b)
	if ca == 0 || ca == cb {
		t.Error("contexts are distinct and not null")
	}
	if _, ok := r.Only(); ok {
		t.Error("two are not one")
	}
	if in, ok := r.Get(cb); !ok || in != b {
		t.Error("get")
	}
	delete(r.live, ca)
	if _, ok := r.Get(ca); ok {
		t.Error("removed and still there")
	}
	if in, ok := r.Only(); !ok || in != b {
		t.Error("only")
	}
}
