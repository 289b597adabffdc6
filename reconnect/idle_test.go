package reconnect_test

import (
	"testing"
	"time"

	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// quietIsNotDown checks promise P7: nothing that happened looked like an outage.
func (r *rig) quietIsNotDown() {
	r.Helper()
	if st := r.sup.Status(); st.Outages != 0 || st.Refused != 0 {
		r.Errorf("%d outages, %d refused", st.Outages, st.Refused)
	}
	if bad := r.log.level("WARN", "ERROR"); len(bad) > 0 {
		r.Errorf("a quiet time made lines: %v", bad)
	}
}

func TestIdle_CloseStaysClosedUntilTheNextChunk(t *testing.T) {
	bubble(t, setup{addrs: []string{"a:9092", "b:9092"}, cfg: fsm.Config{IdlePolicy: fsm.IdleClose}}, func(r *rig) {
		for range 3 {
			r.delivered(r.produce(1), 10*ms)
			r.sleep(4*time.Minute + 10*ms)
			r.want(fsm.Idle)
			if n := r.net.Client().Connected(); n != 0 {
				r.Errorf("%d connections while idle", n)
			}
			before := len(r.net.Attempts())
			r.sleep(3 * time.Hour)
			if n := len(r.net.Attempts()) - before; n != 0 {
				r.Errorf("%d attempts while idle", n)
			}
			if !r.sup.Admit() {
				r.Error("refused while idle")
			}
		}
		if took := r.delivered(r.produce(1), time.Second); took > 20*ms {
			r.Errorf("the first record after a quiet time took %s", took)
		}
		r.quietIsNotDown()
	})
}

// The server closes the idle connections; the client is back within a second, or at the
// next record.
func TestIdle_ServerCloses(t *testing.T) {
	for _, policy := range []fsm.IdlePolicy{fsm.IdleKeep, fsm.IdleKeepalive, fsm.IdleClose} {
		t.Run(policy.String(), func(t *testing.T) {
			bubble(t, setup{cfg: fsm.Config{IdlePolicy: policy}}, func(r *rig) {
				r.delivered(r.produce(1), 10*ms)
				for range 20 {
					r.sleep(3 * time.Minute)
					r.net.Cut()
					r.sleep(10 * ms)
					r.delivered(r.produce(1), 200*ms)
				}
				r.quietIsNotDown()
			})
		})
	}
}

func TestIdle_KeepaliveKeepsAlive(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.sleep(time.Hour)
		if n := r.net.Client().Heartbeats(); n < 59 || n > 61 {
			r.Errorf("%d heartbeats in an hour", n)
		}
		if n := len(r.net.Attempts()); n != 1 {
			r.Errorf("%d attempts", n)
		}
		r.quietIsNotDown()
	})
}

// A firewall forgets the connection: the broker does not answer on it, a new one works.
func TestIdle_KeepaliveReplacesADeadConnection(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.sleep(30 * time.Second)
		r.net.Forget()
		r.sleep(time.Minute) // the heartbeat is due after 60 s and fails after 70 s
		if n := r.net.Client().Shuts(); n != 1 {
			r.Errorf("sockets shut %d times, want once\n%s", n, r.log)
		}
		r.want(fsm.Up)
		if got, want := r.rec.path(), "connecting up connecting up"; got != want {
			r.Errorf("went %q, want %q", got, want)
		}
		if took := r.delivered(r.produce(1), time.Second); took > 20*ms {
			r.Errorf("the next record took %s", took)
		}
		r.quietIsNotDown()
	})
}

// The same while another broker hangs: cutting its attempt is our own doing and no sign
// of an outage.
func TestIdle_KeepaliveReplacesWhileAnotherHangs(t *testing.T) {
	bubble(t, setup{addrs: []string{"a", "b"}}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.net.Set(reconnecttest.Down, "b")
		r.wantWithin(fsm.Degraded, 2*time.Second)
		r.net.Set(reconnecttest.Frozen, "b")
		r.net.Forget("a")
		r.sleep(2 * time.Minute)
		if st := r.sup.Status(); st.Outages != 0 || st.State.Gate() != fsm.Admit || r.net.Client().Connected() != 1 {
			r.Errorf("%d outages, state %s, %d connections\n%s", st.Outages, st.State, r.net.Client().Connected(), r.log)
		}
	})
}

// The broker itself is gone when the heartbeat fails: that is an outage, found by the
// attempt that follows.
func TestIdle_KeepaliveFindsAnOutage(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.net.Set(reconnecttest.Frozen)
		r.sleep(90 * time.Second)
		if st := r.sup.Status(); st.State.Gate() != fsm.Refuse || st.Reason != fsm.ClassTimeout {
			r.Errorf("state %s, reason %s", st.State, st.Reason)
		}
		r.net.Set(reconnecttest.Serving)
		r.wantWithin(fsm.Up, 6*time.Second)
	})
}
