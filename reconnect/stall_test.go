package reconnect_test

import (
	"errors"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// A frozen broker keeps its connections. The stall shuts them, and from then on attempts
// hang and are cut: no more than one a probe time-out and backoff step.
func TestStall_FrozenBroker(t *testing.T) {
	bubble(t, setup{addrs: []string{"a:9092", "b:9092"}}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.net.Set(reconnecttest.Frozen)
		d := r.produce(4)
		refused := r.sup.Refused()
		took := r.wantWithin(fsm.AllDown, 16*time.Second)
		if took < 15*time.Second || !isClosed(refused) {
			r.Errorf("stalled after %s, flushes released: %v", took, isClosed(refused))
		}
		if st := r.sup.Status(); st.Reason != fsm.ClassStalled {
			r.Errorf("reason %s", st.Reason)
		}
		before := len(r.net.Attempts())
		r.sleep(10 * time.Minute)
		if n := len(r.net.Attempts()) - before; n > 2*10*60/9 {
			r.Errorf("%d attempts in ten minutes", n)
		}
		if n := len(r.log.level("WARN", "ERROR")); n > 20 {
			r.Errorf("%d lines at warning or above", n)
		}
		r.net.Set(reconnecttest.Serving)
		r.delivered(d, 11*time.Second)
	})
}

// Brokers that answer and acknowledge nothing are no outage: a partition has no leader. It is
// told with the words of the broker, once a minute.
func TestStall_BrokersAnswer(t *testing.T) {
	bubble(t, setup{mode: reconnecttest.Mute}, func(r *rig) {
		r.net.Trouble("partition t [0] has no leader")
		d := r.produce(1)
		r.sleep(10*time.Minute + 5*time.Second)
		r.want(fsm.Up)
		if st := r.sup.Status(); !st.Stuck || st.Outages != 0 || st.Refused != 0 || st.Generation != 1 || r.net.Client().Shuts() != 0 {
			r.Errorf("outages %d, refused %d, generation %d", st.Outages, st.Refused, st.Generation)
		}
		bad := r.log.level("WARN", "ERROR")
		if len(bad) < 9 || len(bad) > 10 || r.log.count(`why="partition t [0] has no leader"`) != len(bad) {
			r.Errorf("%d lines at warning or above:\n%s", len(bad), r.log)
		}
		r.net.Set(reconnecttest.Serving)
		r.delivered(d, 10*ms)
		if r.sleep(ms); r.sup.Status().Stuck {
			r.Error("still stuck after the acknowledgement")
		}
	})
}

// One of three brokers is frozen, the others answer: its connection is shut and paced by
// itself, flushes are admitted all the time.
func TestStall_OneOfThreeIsSilent(t *testing.T) {
	bubble(t, setup{addrs: []string{"a", "b", "c"}, mode: reconnecttest.Mute}, func(r *rig) {
		r.sleep(time.Second)
		r.net.Set(reconnecttest.Frozen, "a")
		d := r.produce(1)
		r.sleep(20 * time.Second)
		if n := r.net.Client().Connected(); n != 2 {
			r.Errorf("%d connections, want those that answer", n)
		}
		r.sleep(time.Minute)
		if st := r.sup.Status(); st.Outages != 0 || st.Refused != 0 || r.net.Client().Shuts() != 0 {
			r.Errorf("outages %d, refused %d", st.Outages, st.Refused)
		}
		r.net.Set(reconnecttest.Serving)
		r.delivered(d, 10*ms)
	})
}

// The same while the others acknowledge all the time, so that nothing ever looks stalled.
func TestStall_OneOfThreeIsSilentAmongAcks(t *testing.T) {
	bubble(t, setup{addrs: []string{"a", "b", "c"}}, func(r *rig) {
		r.sleep(time.Second)
		r.net.Set(reconnecttest.Frozen, "a")
		for range 200 { // an acknowledgement takes a millisecond, so something is mostly waiting
			r.produce(1)
			r.sleep(100 * ms)
		}
		if n := r.net.Client().Connected(); n != 2 {
			r.Errorf("%d connections, want those that answer", n)
		}
		if n := r.log.count("silent connections were shut"); n != 1 {
			r.Errorf("told %d times\n%s", n, r.log)
		}
		r.quietIsNotDown()
	})
}

// A slow broker that does acknowledge, if late, is none that stalls.
func TestStall_SlowIsNotStalled(t *testing.T) {
	slow := func(n *reconnecttest.Network) { n.AckDelay = 10 * time.Second }
	bubble(t, setup{prepare: slow}, func(r *rig) {
		for range 30 {
			d := r.produce(1)
			r.sleep(3 * time.Second)
			r.produce(1)
			r.delivered(d, 21*time.Second)
		}
		r.quietIsNotDown()
	})
}

func TestFatal_ReopensTheClient(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.net.Set(reconnecttest.Mute)
		d := r.produce(2)
		r.sleep(ms)
		old := r.net.Client()
		old.Fatal(fsm.ClassFatal, "producer fenced")
		r.want(fsm.AllDown)
		if !settled(d) || len(d.Failures()) != 2 || d.Failures()[0].Status != reconnect.PossiblyPersisted {
			r.Errorf("settled %v: %+v", settled(d), d.Failures())
		}
		r.net.Set(reconnecttest.Serving)
		r.wantWithin(fsm.Up, time.Second)
		if r.net.Client() == old || r.sup.Status().Generation != 2 {
			r.Error("the client was not replaced")
		}
		r.delivered(r.produce(1), 10*ms)
		if r.log.count("producer fenced") == 0 {
			r.Errorf("the log does not tell why:\n%s", r.log)
		}
		if late := old.Produce(batchOf(1)); !settled(late) {
			r.Error("the closed client took a batch")
		}
	})
}

// A client that can't be opened is tried again with the same backoff; New does not fail.
func TestFatal_OpenFails(t *testing.T) {
	fail := func(n *reconnecttest.Network) { n.FailOpen(errors.New("no such property")) }
	bubble(t, setup{prepare: fail}, func(r *rig) {
		r.want(fsm.AllDown)
		if r.sup.Admit() || !isClosed(r.sup.Refused()) {
			r.Error("admitted without a client")
		}
		r.sleep(10 * time.Minute)
		if n := r.net.Opens(); n < 120 || n > 170 {
			r.Errorf("opened %d times in ten minutes", n)
		}
		if st := r.sup.Status(); st.Text != "no such property" || st.Outages != 1 {
			r.Errorf("status %+v", st)
		}
		if n := len(r.log.level("WARN", "ERROR")); n > 20 {
			r.Errorf("%d lines at warning or above", n)
		}
		r.net.FailOpen(nil)
		r.wantWithin(fsm.Up, 6*time.Second)
		r.delivered(r.produce(1), 10*ms)
	})
}

// A busy connection that dies without a sign: the stall replaces it long before the
// kernel would, and nothing is lost.
func TestStall_ForgottenConnection(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.net.Forget()
		took := r.delivered(r.produce(1), 17*time.Second)
		r.Logf("delivered after %s", took)
		r.want(fsm.Up)
	})
}
