package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"out_kafka_reconnect/internal/flblog"
	"out_kafka_reconnect/plugin/state"
	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// inProcesses runs f with a state_path for one process after the other.
func inProcesses(t *testing.T, f func(p *process, s settings)) {
	t.Helper()
	path := t.TempDir()
	inProcess(t, func(p *process) { f(p, settings{"state_path": path}) })
}

// crash ends the process as kill -9 does and returns the settings for the next one: what it
// had in memory is gone, what was on the disk is there. The old instances are cut off.
func (p *process) crash(s settings) settings {
	p.t.Helper()
	next := settings{}
	for k, v := range s {
		next[k] = v
	}
	next["state_path"] = diskAfterCrash(p.t, s["state_path"])
	p.net.Set(reconnecttest.Down)
	p.crashed, p.reg = append(p.crashed, p.reg), &Registry{}
	p.before = append(p.before, p.net.Messages()...)
	p.net = reconnecttest.NewNetwork("a:1")
	return next
}

// diskAfterCrash is a copy of the state as it is now.
func diskAfterCrash(t *testing.T, path string) string {
	t.Helper()
	synctest.Wait()
	next := filepath.Join(t.TempDir(), "next")
	if err := os.CopyFS(next, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	return next
}

// files lists the chunks in custody on the disk.
func files(t *testing.T, path string) []string {
	t.Helper()
	synctest.Wait()
	names, err := filepath.Glob(filepath.Join(path, "*", "chunk-*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Delivered between two attempts, and the agent is killed before the second one.
func TestState_WhatWasDeliveredIsKnownAfterACrash(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		a := p.start(s)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		a.want(Retry, records(1, 5))
		a.want(Retry, records(10, 5))
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		p.wantStored(10)
		a.want(OK, records(10, 5))
		s = p.crash(s)
		p.net.Set(reconnecttest.Down)
		b := p.start(s)
		time.Sleep(5 * time.Second)
		b.want(OK, records(1, 5)) // no broker is needed for that
		b.want(Retry, records(10, 5))
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		b.want(OK, records(10, 5)) // a new chunk with the bytes of one that was collected
		if n := len(p.net.Messages()); n != 5 {
			t.Errorf("%d records were sent", n)
		}
		p.reg.CloseAll()
		c := p.start(s)
		c.want(OK, records(1, 5))
		if n := len(p.net.Messages()); n != 10 {
			t.Errorf("%d records were sent, the memo was for one chunk", n)
		}
	})
}

func TestState_NothingIsWrittenWhileChunksAreAcknowledgedInTime(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		a := p.start(s)
		size := func() (sum int64) {
			err := filepath.WalkDir(s["state_path"], func(_ string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				info, err := d.Info()
				sum += info.Size()
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return sum
		}
		before := size()
		for i := range 100 {
			a.want(OK, records(10*i, 10))
		}
		if n := size() - before; n != 0 {
			t.Errorf("%d bytes", n)
		}
	})
}

// A stop while a chunk is partly delivered: the next process sends the rest.
func TestState_TheRestOfAChunkFollowsAfterAStop(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		p.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			if strings.Contains(m.Value, `"3"`) || strings.Contains(m.Value, `"7"`) {
				return &reconnect.Failure{Class: fsm.ClassTransient, Text: "timed out"}
			}
			return nil
		}
		a := p.start(s)
		a.want(Retry, records(1, 10))
		p.net.Set(reconnecttest.Down)
		p.wantStored(8)
		p.reg.CloseAll()
		p.before, p.net = p.net.Messages(), reconnecttest.NewNetwork("a:1")
		b := p.start(s)
		b.want(OK, records(1, 10))
		p.wantStored(10)
		b.want(OK, records(1, 10))
		if n := len(p.net.Messages()); n != 2+10 {
			t.Errorf("%d sent: the same bytes again are another chunk", n)
		}
	})
}

func TestState_ChunksInCustodyOutliveTheProcess(t *testing.T) {
	for _, how := range []string{"stop", "crash"} {
		t.Run(how, func(t *testing.T) {
			inProcesses(t, func(p *process, s settings) {
				a := p.start(s)
				p.net.Set(reconnecttest.Down)
				time.Sleep(5 * time.Second)
				a.want(Retry, records(1, 5))
				p.reg.ExpectReload()
				time.Sleep(10 * time.Second)
				a.want(OK, records(1, 5))
				a.want(OK, records(10, 5))
				if n := len(files(t, s["state_path"])); n != 2 {
					t.Fatalf("%d files", n)
				}
				if how == "crash" {
					s = p.crash(s)
				} else {
					p.reg.CloseAll()
					if p.host.count("stay in state_path and are delivered after the next start with a section of these topics and brokers chunks=2 dir="+s["state_path"]+"/") != 1 || p.host.count("are lost") != 0 {
						t.Errorf("log %q", p.host.lines)
					}
				}
				p.net.Set(reconnecttest.Down)
				b := p.start(s)
				b.want(Retry, records(1, 5)) // another chunk with the same bytes
				p.net.Set(reconnecttest.Serving)
				time.Sleep(10 * time.Second)
				b.want(OK, records(1, 5))
				if n := len(p.net.Messages()); n != 15 || len(files(t, s["state_path"])) != 0 {
					t.Errorf("%d records, %q", n, files(t, s["state_path"]))
				}
			})
		})
	}
}

// noTopic has the brokers know no topic for records with the number 3 until it is made.
func (p *process) noTopic(made *atomic.Bool) {
	p.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
		if !made.Load() && strings.Contains(m.Value, `"3"`) {
			return &reconnect.Failure{Class: fsm.ClassTopic, Code: 3, Text: "unknown topic"}
		}
		return nil
	}
}

// again ends the process by a stop or a crash, and returns the settings for the next one.
func (p *process) again(how string, s settings) settings {
	p.t.Helper()
	if how == "crash" {
		return p.crash(s)
	}
	p.reg.CloseAll()
	p.before = append(p.before, p.net.Messages()...)
	p.net = reconnecttest.NewNetwork("a:1")
	return s
}

// All of a chunk is delivered but one record, which waits until somebody makes its topic, and the agent
// ends again and again. Fluent Bit has the chunk, or a reload has handed it over before or after its other
// records were delivered.
func TestState_TheRestOfAChunkWaitsForItsTopic(t *testing.T) {
	for _, how := range []string{"stop", "crash"} {
		for _, taken := range []string{"not", "before", "after"} {
			t.Run(how+", taken over: "+taken, func(t *testing.T) {
				custody := taken != "not"
				inProcesses(t, func(p *process, s settings) {
					var made atomic.Bool
					p.noTopic(&made)
					a := p.start(s)
					if taken == "before" {
						p.net.Set(reconnecttest.Down)
						time.Sleep(5 * time.Second)
					}
					a.want(Retry, records(1, 10))
					if custody {
						p.reg.ExpectReload()
						time.Sleep(10 * time.Second)
						a.want(OK, records(1, 10))
						a.endByReload()
						a = p.start(s)
					}
					p.net.Set(reconnecttest.Serving)
					time.Sleep(10 * time.Second)
					p.wantStored(9)
					for range 3 {
						s = p.again(how, s)
						p.noTopic(&made)
						a = p.start(s)
						if !custody {
							a.want(Retry, records(1, 10))
						}
						time.Sleep(20 * time.Second)
						p.wantStored(9)
					}
					made.Store(true)
					time.Sleep(20 * time.Second)
					p.wantStored(10)
					if left := files(t, s["state_path"]); len(left) > 0 {
						t.Errorf("%q", left)
					}
					if !custody {
						a.want(OK, records(1, 10))
						p.wantStored(10)
					}
				})
			})
		}
	}
}

// An outage comes while a chunk is partly delivered, and a reload in it takes the chunk over.
func TestState_TheRestOfAChunkIsTakenOver(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		p.net.Reject = func(m reconnecttest.Message) *reconnect.Failure {
			if strings.Contains(m.Value, `"3"`) {
				return &reconnect.Failure{Class: fsm.ClassTransient, Text: "timed out"}
			}
			return nil
		}
		a := p.start(s)
		a.want(Retry, records(1, 10))
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		p.reg.ExpectReload()
		time.Sleep(10 * time.Second)
		a.want(OK, records(1, 10))
		p.wantStored(9)
		s = p.crash(s)
		p.start(s)
		p.wantStored(10)
	})
}

// A disk that is full at a reload: Fluent Bit keeps its chunks.
func TestState_WhatCantBeWrittenIsNotTakenOver(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		a := p.start(s)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		p.reg.ExpectReload()
		time.Sleep(10 * time.Second)
		if err := os.RemoveAll(s["state_path"]); err != nil {
			t.Fatal(err)
		}
		a.want(Retry, records(1, 5))
		a.want(Retry, records(10, 5))
		if st := a.courier.Status(); st.Owned != 0 || p.host.count("chunks are not taken over") != 1 {
			t.Errorf("%+v, log %q", st, p.host.lines)
		}
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		a.want(OK, records(1, 5))
		p.wantStored(10)
	})
}

// There is room again only when the time for taking over would have passed.
func TestState_WhatCantBeWrittenIsTakenOverLater(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		a := p.start(s)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		p.reg.ExpectReload()
		time.Sleep(10 * time.Second)
		full := s["state_path"] + "-full"
		if err := os.Rename(s["state_path"], full); err != nil {
			t.Fatal(err)
		}
		for range 2 * takeOverFor / time.Second {
			a.want(Retry, records(1, 5))
			time.Sleep(time.Second)
		}
		if err := os.Rename(full, s["state_path"]); err != nil {
			t.Fatal(err)
		}
		a.want(OK, records(1, 5))
		if n := len(files(t, s["state_path"])); n != 1 {
			t.Errorf("%d files", n)
		}
		p.net.Set(reconnecttest.Serving)
		time.Sleep(10 * time.Second)
		p.wantStored(5)
	})
}

// A reload with other settings: the state goes on with what it tells of, and moves along to another path.
func TestState_AnHeirGoesOn(t *testing.T) {
	for _, moves := range []bool{false, true} {
		t.Run(fmt.Sprint("moves: ", moves), func(t *testing.T) {
			inProcesses(t, func(p *process, s settings) { anHeirGoesOn(t, p, s, moves) })
		})
	}
}

func anHeirGoesOn(t *testing.T, p *process, s settings, moves bool) {
	t.Helper()
	a := p.start(s)
	p.net.Set(reconnecttest.Down)
	time.Sleep(5 * time.Second)
	a.want(Retry, records(1, 5))
	p.reg.ExpectReload()
	time.Sleep(10 * time.Second)
	a.want(OK, records(10, 5))
	a.endByReload()
	old := s["state_path"]
	s = settings{"state_path": old, "reconnect_backoff_max": "2s"}
	if moves {
		s["state_path"] += "/other"
	}
	p.start(s)
	if n := len(files(t, s["state_path"])); n != 1 || moves && len(files(t, old)) != 0 {
		t.Fatalf("%d files, and %q", n, files(t, old))
	}
	p.net.Set(reconnecttest.Serving)
	time.Sleep(10 * time.Second)
	p.wantStored(10)
	if n := len(files(t, s["state_path"])); n != 0 {
		t.Errorf("%d files", n)
	}
	s = p.crash(s)
	c := p.start(s)
	c.want(OK, records(1, 5))
	if n := len(p.net.Messages()); n != 0 {
		t.Errorf("%d records were sent again", n)
	}
}

// reloadInOutage has an instance take a chunk over in an outage, and ends it by a hot reload.
func reloadInOutage(a *section, chunk []byte) {
	a.p.net.Set(reconnecttest.Down)
	time.Sleep(5 * time.Second)
	a.p.reg.ExpectReload()
	time.Sleep(10 * time.Second)
	a.want(OK, chunk)
	a.endByReload()
}

// The bootstrap addresses move, one reload after the other, and the next start has none of those at first.
func TestState_TheAddressesMoveByReloads(t *testing.T) {
	for _, how := range []string{"stop", "crash"} {
		t.Run(how, func(t *testing.T) {
			inProcesses(t, func(p *process, s settings) {
				reloadInOutage(p.start(s), records(1, 5))
				for _, brokers := range []string{"a:1,b:1", "b:1"} {
					s["brokers"] = brokers
					p.start(s).endByReload()
				}
				p.start(s)
				s = p.again(how, s)
				p.net = reconnecttest.NewNetwork("b:1")
				p.start(s)
				p.wantStored(5)
			})
		})
	}
}

// There was no state_path at the reload, or there is none any longer, or the new one can't be used: what is
// taken over is told of where it is.
func TestState_APathThatIsNotFollowed(t *testing.T) {
	unusable := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(unusable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ path, line string }{
		{"", "state_path is gone from the section"},
		{unusable, "the state can't be moved to the new state_path"},
	} {
		t.Run(test.line, func(t *testing.T) {
			inProcesses(t, func(p *process, s settings) {
				reloadInOutage(p.start(s), records(1, 5))
				p.start(settings{"state_path": test.path})
				p.reg.CloseAll()
				in := " dir=" + s["state_path"] + "/"
				if p.host.count(test.line) != 1 || p.host.count("stay outside state_path") != 1 || p.host.count(in) != 2 || p.host.count("are lost") != 0 {
					t.Errorf("log %q", p.host.lines)
				}
				p.net = reconnecttest.NewNetwork("a:1")
				p.start(s)
				p.wantStored(5)
			})
		})
	}
	inProcesses(t, func(p *process, s settings) {
		reloadInOutage(p.start(nil), records(1, 5))
		p.start(s)
		p.reg.CloseAll()
		if p.host.count("state_path is used from the next start on") != 1 || p.host.count("are lost chunks=1") != 1 {
			t.Errorf("log %q", p.host.lines)
		}
	})
}

// The section can't start after a reload: what was taken over is there for the one that can, or until the
// process ends.
func TestState_AReloadThatFailsKeepsWhatWasTakenOver(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		fails := func(s settings) {
			t.Helper()
			for _, bad := range []settings{{"dead_letter_file": "/proc/none/letters", "state_path": s["state_path"] + "/other"}, {"reload_timeout": "5s"}} {
				cfg := decode(t, bad)
				heir, _ := p.reg.Claim(cfg)
				if _, err := New(Options{Config: cfg, Relay: flblog.NewRelay(p.host, "test"), Heir: heir, Registry: p.reg}); heir == nil || err == nil {
					t.Fatalf("heir of %v, error %v", heir, err)
				}
				p.reg.PutBack(heir)
			}
		}
		reloadInOutage(p.start(s), records(1, 5))
		fails(s)
		b := p.start(s)
		b.endByReload()
		fails(s)
		p.reg.CloseParked()
		if b.end() || len(files(t, s["state_path"])) != 1 {
			t.Errorf("it lives on, with %q", files(t, s["state_path"]))
		}
		p.net = reconnecttest.NewNetwork("a:1")
		p.start(s)
		p.wantStored(5)
	})
}

func TestState_AnUnusablePathEndsTheStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	net := reconnecttest.NewNetwork("a:1")
	_, err := New(Options{Config: decode(t, settings{"state_path": path}), Open: net.Open, Relay: flblog.NewRelay(&host{}, "test")})
	if err == nil || !strings.Contains(err.Error(), "state_path") || !strings.Contains(err.Error(), path) || net.Opens() != 0 {
		t.Errorf("error %v", err)
	}
}

// A start that fails later leaves the state free for the next one.
func TestState_AFailedStartHoldsNothing(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		if _, err := New(Options{Config: decode(t, s), Relay: flblog.NewRelay(p.host, "test")}); err == nil {
			t.Fatal("started without a client")
		}
		p.start(s)
		if dirs, _ := filepath.Glob(filepath.Join(s["state_path"], "*")); len(dirs) != 1 {
			t.Errorf("%q", dirs)
		}
	})
}

// A dead-letter file that can't be written to when the agent stops: what is delivered beside the letter is
// written once.
func TestState_ADeadLetterThatWaitsForItsFile(t *testing.T) {
	path := letterFile(t)
	inProcesses(t, func(p *process, s settings) {
		s["dead_letter_file"] = path
		p.net.Reject = rejects
		a := p.start(s)
		mend := obstruct(t, path)
		a.want(Retry, records(1, 5))
		time.Sleep(10 * time.Second)
		a.want(Retry, records(1, 5))
		p.wantStored(4)
		mend()
		s = p.again("stop", s)
		p.net.Reject = rejects
		a = p.start(s)
		a.deliver(records(1, 5))
		p.wantStored(4)
		if l := lettersIn(t, path); len(l) != 1 || l[0].Value != rejected3 {
			t.Errorf("%+v", l)
		}
	})
}

// Another topic, and chunks of the old one are in custody: nobody may send them elsewhere, but somebody
// must know.
func TestState_ChunksOfOtherSettingsAreToldOf(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		a := p.start(s)
		p.net.Set(reconnecttest.Down)
		time.Sleep(5 * time.Second)
		p.reg.ExpectReload()
		time.Sleep(10 * time.Second)
		a.want(OK, records(1, 5))
		s = p.crash(s)
		changed := settings{"state_path": s["state_path"], "topics": "other"}
		b, c := p.start(changed), p.start(settings{"state_path": s["state_path"], "topics": "third"})
		time.Sleep(20 * time.Second)
		const line = "chunks in state_path are no section's"
		if p.host.count(line) != 1 || p.host.count(`chunks=1 bytes=`) != 1 || p.host.count(`brokers=a:1 settings="topics fluent-bit, format json"`) != 1 {
			t.Errorf("log %q", p.host.lines)
		}
		if n := b.Metrics().Forgotten + c.Metrics().Forgotten; n != 1 {
			t.Errorf("%d in the metrics", n)
		}
		p.wantStored(0)
		// The old settings are put back.
		p.reg.CloseAll()
		p.start(s)
		time.Sleep(20 * time.Second)
		p.wantStored(5)
		if p.host.count(line) != 1 {
			t.Errorf("log %q", p.host.lines)
		}
	})
}

// A chunk on the disk that is no chunk any more is not fatal.
func TestState_ACorruptChunkIsToldOf(t *testing.T) {
	inProcesses(t, func(p *process, s settings) {
		cfg := decode(t, s)
		st, err := state.Open(state.Options{Path: cfg.StatePath, Destination: cfg.DestinationID(), Brokers: cfg.BrokerList(), Logger: flblog.NewRelay(p.host, "x").Logger()})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Keep("tag", records(1, 5)); err != nil {
			t.Fatal(err)
		}
		name, err := st.Keep("tag", records(10, 5))
		if err == nil {
			err = errors.Join(os.WriteFile(filepath.Join(cfg.StatePath, cfg.DestinationID()+".0", name), []byte("x"), 0o600), st.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		p.start(s)
		p.wantStored(5)
		time.Sleep(time.Second) // a line waits for a thread of the host
		if p.host.count("can't be read") != 1 {
			t.Errorf("log %q", p.host.lines)
		}
	})
}
