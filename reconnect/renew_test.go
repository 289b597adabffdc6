package reconnect_test

import (
	"errors"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// A certificate changes while all is well: the old client finishes what it has, new batches
// go to the next one, nobody is refused.
func TestRenew_FilesWhileUp(t *testing.T) {
	slow := func(n *reconnecttest.Network) { n.AckDelay = 10 * time.Second }
	bubble(t, setup{prepare: slow}, func(r *rig) {
		r.delivered(r.produce(1), 11*time.Second) // it has had nothing to do once
		r.sleep(14 * time.Second)
		d := r.produce(3)
		old := r.net.Client()
		r.net.Change()
		r.sleep(6 * time.Second)
		if st := r.sup.Status(); st.Generation != 2 || r.net.Client() == old {
			r.Fatalf("generation %d after the change\n%s", st.Generation, r.log)
		}
		late := r.produce(2)
		r.delivered(d, 10*time.Second)
		r.delivered(late, 11*time.Second)
		if n := len(r.net.Messages()); n != 6 {
			r.Errorf("%d messages written, want 6", n)
		}
		r.sleep(time.Second)
		if refused := old.Produce(batchOf(1)); !settled(refused) {
			r.Error("the old client is still open")
		}
		if n := r.log.count(`msg="client replaced" why=/etc/secret because="files changed" generation=2`); n != 1 {
			r.Errorf("told %d times:\n%s", n, r.log)
		}
		r.quietIsNotDown()
	})
}

// An old client that can't finish does not stay for ever: what it has is given back.
func TestRenew_OldClientIsBounded(t *testing.T) {
	bubble(t, setup{mode: reconnecttest.Mute}, func(r *rig) {
		r.sleep(25 * time.Second)
		d := r.produce(1)
		r.net.Change()
		r.sleep(6*time.Second + 15*time.Second)
		if !settled(d) || len(d.Failures()) != 1 || d.Failures()[0].Status != reconnect.PossiblyPersisted {
			r.Errorf("settled %v: %+v", settled(d), d.Failures())
		}
	})
}

// A file that is half written makes no client: the one that is open stays, which is told
// once. The whole file is taken at the next look.
func TestRenew_HalfWrittenFile(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		r.net.Change()
		r.net.FailOpen(errors.New("ssl.key.location: no end line"))
		r.sleep(5 * time.Minute)
		r.delivered(r.produce(1), 10*ms)
		if st := r.sup.Status(); st.Generation != 1 || st.Outages != 0 {
			r.Errorf("generation %d, outages %d", st.Generation, st.Outages)
		}
		if n := r.log.count("no end line"); n != 1 {
			r.Errorf("told %d times:\n%s", n, r.log)
		}
		r.net.FailOpen(nil)
		r.sleep(31 * time.Second)
		r.want(fsm.Up)
		if st := r.sup.Status(); st.Generation != 2 {
			r.Errorf("generation %d", st.Generation)
		}
	})
}

// The file is corrected during an outage: the next rounds of attempts look at it, whatever
// the time while all is well is.
func TestRenew_FilesWhileDown(t *testing.T) {
	bubble(t, setup{mode: reconnecttest.Rejecting}, func(r *rig) {
		r.wantWithin(fsm.AllDown, time.Second)
		r.sleep(11 * time.Second)
		before := r.sup.Status().Generation
		r.net.Change()
		r.net.Set(reconnecttest.Serving)
		// This round already works: the change is taken beside it. Down again at once, it
		// is the next round that must see the change.
		r.wantWithin(fsm.Up, 6*time.Second)
		r.sleep(31 * time.Second)
		if st := r.sup.Status(); st.Generation != before+1 {
			r.Errorf("generation %d, before %d\n%s", st.Generation, before, r.log)
		}
		r.net.Set(reconnecttest.Rejecting)
		r.net.Cut()
		r.wantWithin(fsm.AllDown, time.Second)
		r.sleep(4 * time.Second)
		before = r.sup.Status().Generation
		r.net.Change()
		r.sleep(11 * time.Second)
		if st := r.sup.Status(); st.Generation <= before {
			r.Errorf("generation %d after two more rounds\n%s", st.Generation, r.log)
		}
	})
}

// Ten refused logins in a row: a new client, again and again at the pace of the backoff.
func TestRenew_RefusedLogins(t *testing.T) {
	bubble(t, setup{mode: reconnecttest.Rejecting}, func(r *rig) {
		r.sleep(10 * time.Minute)
		st := r.sup.Status()
		if st.Generation < 10 || st.Generation > 20 || st.Outages != 1 {
			r.Errorf("generation %d, outages %d", st.Generation, st.Outages)
		}
		checkSchedule(r, 5*time.Second)
		if n := len(r.log.level("WARN", "ERROR")); n > 20 {
			r.Errorf("%d lines at warning or above", n)
		}
		r.net.Set(reconnecttest.Serving)
		r.wantWithin(fsm.Up, 6*time.Second)
		r.delivered(r.produce(1), 10*ms)
	})
}

// Only learned addresses are tried and all fail: a new client begins with the configured
// ones. Where those are tried too it would help nobody.
func TestRenew_DeadEnd(t *testing.T) {
	for _, tc := range []struct {
		name       string
		configured string
		want       bool
	}{{"configured address is not tried", "gone:9092", true}, {"configured address is tried", "a:9092", false}} {
		t.Run(tc.name, func(t *testing.T) {
			prepare := func(n *reconnecttest.Network) { n.Configure(tc.configured); n.Set(reconnecttest.Unwanted, "gone:9092") }
			bubble(t, setup{addrs: []string{"a:9092", "gone:9092"}, prepare: prepare}, func(r *rig) {
				r.wantWithin(fsm.Up, time.Second)
				r.net.Set(reconnecttest.Down, "a:9092")
				r.sleep(time.Minute)
				if st := r.sup.Status(); st.Generation > 1 != tc.want {
					r.Errorf("generation %d\n%s", st.Generation, r.log)
				}
			})
		})
	}
}

// Nothing is acknowledged for long and nobody knows why: new clients, less and less often.
func TestRenew_Stuck(t *testing.T) {
	bubble(t, setup{mode: reconnecttest.Mute}, func(r *rig) {
		for range 60 {
			if r.sup.Outstanding() == 0 {
				r.produce(1)
			}
			r.sleep(time.Minute)
		}
		if st := r.sup.Status(); st.Generation < 3 || st.Generation > 6 || st.Outages != 0 || st.Refused != 0 {
			r.Errorf("generation %d, outages %d, refused %d\n%s", st.Generation, st.Outages, st.Refused, r.log)
		}
		r.net.Set(reconnecttest.Serving)
		r.sleep(time.Second)
		r.delivered(r.produce(1), 10*ms)
	})
}
