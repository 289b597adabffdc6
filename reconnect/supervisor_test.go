package reconnect_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

const ms = time.Millisecond

func TestSupervisor_StartsAndDelivers(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		d := r.produce(3) // admitted before anything is known
		if n := r.sup.Outstanding(); n != 3 {
			r.Errorf("%d outstanding, want 3", n)
		}
		r.delivered(d, 10*ms)
		if n := r.sup.Outstanding(); n != 0 {
			r.Errorf("%d outstanding after the delivery", n)
		}
		r.want(fsm.Up)
		if n := len(r.net.Messages()); n != 3 {
			r.Errorf("%d messages arrived, want 3", n)
		}
		r.sleep(time.Hour)
		if bad := r.log.level("INFO", "WARN", "ERROR"); len(bad) > 0 {
			r.Errorf("normal operation is not silent: %v", bad)
		}
	})
}

func TestSupervisor_RefusesWhileAllDown(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		refused := r.sup.Refused()
		r.net.Set(reconnecttest.Down)
		d := r.produce(5) // the loss alone is no outage
		r.wantWithin(fsm.AllDown, 200*ms)
		if !isClosed(refused) || settled(d) {
			r.Errorf("waiting flush released: %v, delivery settled: %v; want true, false", isClosed(refused), settled(d))
		}
		if _, err := r.sup.Produce(batchOf(1)); !errors.Is(err, reconnect.ErrAllBrokersDown) {
			r.Errorf("Produce: %v", err)
		}
		if r.sup.Admit() || admitted(r.sup) || !isClosed(r.sup.Refused()) {
			r.Error("admitted while all brokers are down")
		}
		if st := r.sup.Status(); st.Refused != 2 || st.Outages != 1 || st.Reason != fsm.ClassNetwork || st.NextTry.IsZero() || st.Outstanding != 5 {
			r.Errorf("status %+v", st)
		}
		r.sleep(10 * time.Second)
		r.net.Set(reconnecttest.Serving)
		took := r.delivered(d, 6*time.Second) // what the client holds goes out without a retry
		r.Logf("delivered %s after the broker was back", took)
		r.want(fsm.Up)
		if isClosed(r.sup.Refused()) || !r.sup.Admit() {
			r.Error("still refusing")
		}
		if st := r.sup.Status(); st.DownTotal < 10*time.Second || !st.DownSince.IsZero() || st.Reason != fsm.ClassNone {
			r.Errorf("status after the outage %+v", st)
		}
	})
}

// Attempts leave when the schedule says so, one for each address, and none in between.
func TestSupervisor_OneHourOutage(t *testing.T) {
	cfg := fsm.Config{}
	bubble(t, setup{cfg: cfg, addrs: []string{"a:9092", "b:9092", "c:9092"}}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.net.Set(reconnecttest.Down)
		r.wantWithin(fsm.AllDown, 2*time.Second)
		start := r.net.Now()
		before := len(r.net.Attempts())
		r.sleep(time.Hour)
		attempts := r.net.Attempts()[before:]
		rounds := r.sup.Status().Attempts
		r.Logf("%d attempts to 3 addresses in %d rounds", len(attempts), rounds)
		if len(attempts) > 3*rounds || len(attempts) < 3*(rounds-1) {
			r.Errorf("%d attempts in %d rounds of 3 addresses", len(attempts), rounds)
		}
		if rounds < 700 || rounds > 980 {
			r.Errorf("%d rounds in an hour", rounds)
		}
		perSecond := map[int]int{}
		for _, a := range attempts {
			perSecond[int((a.At-start)/time.Second)]++
		}
		for s, n := range perSecond {
			if s > 10 && n > 3 {
				r.Errorf("%d attempts in second %d", n, s)
			}
		}
		checkSchedule(r, 5*time.Second)
		r.net.Set(reconnecttest.Serving)
		if took := r.wantWithin(fsm.Up, 6*time.Second); took > 5*time.Second+100*ms {
			r.Errorf("back after %s", took)
		}
		r.delivered(r.produce(1), 10*ms)
	})
}

// checkSchedule compares the rounds of attempts with the waits that were announced.
func checkSchedule(r *rig, longest time.Duration) {
	r.Helper()
	r.rec.mu.Lock()
	defer r.rec.mu.Unlock()
	var down reconnect.Report
	for _, t := range r.rec.transitions {
		switch {
		case t.To == fsm.AllDown:
			down = t
			if t.Wait < t.Step*3/4 || t.Wait > min(t.Step*3/2, longest) {
				r.Errorf("wait %s is outside the interval of step %s", t.Wait, t.Step)
			}
		case t.From == fsm.AllDown && t.To == fsm.Probing:
			if d := t.At - down.At; d < down.Wait || d > down.Wait+ms {
				r.Errorf("attempt %d after %s, %s was due", t.Attempt, d, down.Wait)
			}
		}
	}
}

func TestSupervisor_TwoOutagesBeginAtTheFirstStep(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		for i := range 2 {
			r.delivered(r.produce(1), 10*ms)
			r.net.Set(reconnecttest.Down)
			r.wantWithin(fsm.AllDown, time.Second)
			if st := r.sup.Status(); st.Outages != i+1 || st.Attempts != 0 || st.Wait > 150*ms {
				r.Errorf("outage %d: %+v", i+1, st)
			}
			r.sleep(time.Minute)
			r.net.Set(reconnecttest.Serving)
			r.wantWithin(fsm.Up, 6*time.Second)
		}
		if n := r.log.count(`"all brokers down"`); n != 2 {
			r.Errorf("%d lines at the beginning of two outages\n%s", n, r.log)
		}
	})
}

// A broker that is up for a moment, again and again, gets no more attempts than a dead one
// while it acknowledges nothing, and the log tells one story.
func TestSupervisor_Flapping(t *testing.T) {
	bubble(t, setup{cfg: fsm.Config{IdlePolicy: fsm.IdleKeep}}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.net.Set(reconnecttest.Down)
		for range 40 {
			r.wantWithin(fsm.AllDown, 2*time.Second)
			r.net.Set(reconnecttest.Mute)
			r.wantWithin(fsm.Up, 6*time.Second)
			r.produce(1)
			r.sleep(300 * ms)
			r.net.Set(reconnecttest.Down)
		}
		st := r.sup.Status()
		if st.Outages != 1 || st.Wait < 3750*ms {
			r.Errorf("outages %d, last wait %s; want one outage at the largest step", st.Outages, st.Wait)
		}
		if n := len(r.log.level("ERROR")); n != 1 {
			r.Errorf("%d error lines, want 1", n)
		}
		r.net.Set(reconnecttest.Serving)
		r.wantWithin(fsm.Up, 6*time.Second)
		r.delivered(r.produce(1), 10*ms)
		r.sleep(ms)
		if r.sup.Outstanding() != 0 || len(r.rec.confirmed) != 1 {
			r.Errorf("%d outstanding, confirmed %d times", r.sup.Outstanding(), len(r.rec.confirmed))
		}
	})
}

// A broker that comes and goes and does acknowledge makes many outages, each beginning
// at the first step, and still few lines.
func TestSupervisor_FlappingWithAcks(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		start := r.net.Now()
		for r.net.Now()-start < 10*time.Minute {
			r.delivered(r.produce(1), 10*ms)
			r.sleep(time.Second)
			r.net.Set(reconnecttest.Down)
			r.wantWithin(fsm.AllDown, time.Second)
			r.net.Set(reconnecttest.Serving)
			r.wantWithin(fsm.Up, 2*time.Second)
		}
		st := r.sup.Status()
		bad := r.log.level("ERROR", "WARN")
		r.Logf("%d outages, %d lines at warning or above, %d at info", st.Outages, len(bad), len(r.log.level("INFO")))
		if st.Outages < 200 || len(bad) > 13 {
			r.Errorf("%d outages, %d lines at warning or above", st.Outages, len(bad))
		}
	})
}

// A connection that gets ready and is closed at once is not tried four times a second.
func TestSupervisor_ClosingBroker(t *testing.T) {
	bubble(t, setup{mode: reconnecttest.Closing, cfg: fsm.Config{IdlePolicy: fsm.IdleKeep}}, func(r *rig) {
		r.sleep(10 * time.Minute)
		n := len(r.net.Attempts())
		r.Logf("%d attempts in ten minutes", n)
		if n > 170 {
			r.Errorf("%d attempts in ten minutes", n)
		}
		if st := r.sup.Status(); st.Outages != 1 || st.State != fsm.AllDown || !strings.Contains(st.Text, "closed at once") {
			r.Errorf("status %+v", st)
		}
		if n := len(r.log.level("WARN", "ERROR")); n > 20 {
			r.Errorf("%d lines at warning or above", n)
		}
		r.net.Set(reconnecttest.Serving)
		r.wantWithin(fsm.Up, 6*time.Second)
		r.delivered(r.produce(1), 10*ms)
	})
}

func TestSupervisor_OneDeadOfThree(t *testing.T) {
	bubble(t, setup{addrs: []string{"a:9092", "b:9092", "c:9092"}}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.net.Set(reconnecttest.Down, "b:9092")
		r.wantWithin(fsm.Degraded, time.Second)
		before := len(r.net.AttemptsTo("b:9092"))
		for range 3 * 60 {
			r.sleep(time.Minute)
			r.delivered(r.produce(1), 10*ms)
		}
		r.want(fsm.Degraded)
		n := len(r.net.AttemptsTo("b:9092")) - before
		r.Logf("%d attempts to the dead broker in three hours", n)
		if n > 3*3600/4+20 || n < 3*3600/7 {
			r.Errorf("%d attempts to the dead broker in three hours", n)
		}
		if bad := r.log.level("WARN", "ERROR"); len(bad) != 1 {
			r.Errorf("want one warning: %v", bad)
		}
		// When the others go, the dead one is tried at once: it may be back.
		r.net.Set(reconnecttest.Serving, "b:9092")
		r.net.Set(reconnecttest.Down, "a:9092", "c:9092")
		r.delivered(r.produce(1), 1300*ms)
		r.want(fsm.Degraded)
	})
}

func TestSupervisor_AuthenticationIsTheReason(t *testing.T) {
	bubble(t, setup{mode: reconnecttest.Rejecting}, func(r *rig) {
		r.wantWithin(fsm.AllDown, time.Second)
		r.sleep(2 * time.Minute)
		st := r.sup.Status()
		if st.Reason != fsm.ClassAuthentication || st.Text == "" {
			r.Errorf("reason %s, text %q", st.Reason, st.Text)
		}
		if r.log.count("reason=authentication") == 0 || r.log.count("invalid credentials") == 0 {
			r.Errorf("the log does not tell:\n%s", r.log)
		}
		r.net.Set(reconnecttest.Serving)
		r.wantWithin(fsm.Up, 6*time.Second)
	})
}

// The notice that explains comes after the connection is lost.
func TestSupervisor_ReasonArrivesLate(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		r.net.Set(reconnecttest.Down)
		r.wantWithin(fsm.AllDown, time.Second)
		r.net.Client().Error(fsm.ClassTLS, "certificate has expired")
		r.sleep(0)
		r.net.Client().Error(fsm.ClassTLS, "certificate has expired")
		r.net.Client().Error(fsm.ClassNetwork, "nothing new")
		r.sleep(0)
		if st := r.sup.Status(); st.Reason != fsm.ClassTLS || st.Text != "certificate has expired" {
			r.Errorf("reason %s %q", st.Reason, st.Text)
		}
		if len(r.rec.reasons) != 1 {
			r.Errorf("told %d times, want once", len(r.rec.reasons))
		}
		r.sleep(time.Minute)
		if len(r.rec.still) != 1 || r.rec.still[0].Text != "certificate has expired" {
			r.Errorf("told after a minute: %+v", r.rec.still)
		}
	})
}

// The count of attempts goes on when a client is replaced, and agrees with what the network saw.
func TestSupervisor_CountsAttemptsOverAllClients(t *testing.T) {
	bubble(t, setup{addrs: []string{"a:9092", "b:9092"}, cfg: fsm.Config{IdlePolicy: fsm.IdleKeep}}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		r.net.Set(reconnecttest.Down)
		r.wantWithin(fsm.AllDown, time.Second)
		r.sleep(time.Minute)
		r.net.Client().Fatal(fsm.ClassFatal, "fenced")
		r.sleep(time.Minute)
		r.net.Set(reconnecttest.Serving)
		r.wantWithin(fsm.Up, 6*time.Second)
		r.sleep(10 * time.Second) // the other broker is back too
		st := r.sup.Status()
		if st.Generation != 2 {
			r.Fatalf("%d clients", st.Generation)
		}
		if seen := uint64(len(r.net.Attempts())); st.ConnectAttempts != seen || st.ConnectFailures+st.ConnectSuccesses != seen {
			r.Errorf("%d attempts, %d failed, %d succeeded; the network saw %d",
				st.ConnectAttempts, st.ConnectFailures, st.ConnectSuccesses, seen)
		}
		if st.ConnectSuccesses != 4 { // both brokers, at the start and after the outage
			r.Errorf("%d succeeded, want 4", st.ConnectSuccesses)
		}
	})
}

func admitted(s *reconnect.Supervisor) bool {
	ok, opened := s.Admitted()
	return ok || isClosed(opened)
}
