package reconnect_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// A stop in every state ends in bounded time, settles every delivery, and leaves nothing
// behind (the bubble and goleak see to that).
func TestClose_InEveryState(t *testing.T) {
	for _, tc := range []struct {
		name  string
		setup setup
		reach func(*rig) *reconnect.Delivery
		state fsm.State
		// limit is how long Close may take; acked whether the delivery must succeed.
		limit time.Duration
		acked bool
	}{
		{"connecting, nothing outstanding", setup{mode: reconnecttest.Frozen}, func(*rig) *reconnect.Delivery { return nil }, fsm.Connecting, ms, false},
		{"connecting, records waiting", setup{mode: reconnecttest.Frozen}, func(r *rig) *reconnect.Delivery { return r.produce(1) }, fsm.Connecting, 3*time.Second + ms, false},
		{"up, nothing outstanding", setup{}, func(r *rig) *reconnect.Delivery { d := r.produce(1); r.sleep(10 * ms); return d }, fsm.Up, ms, true},
		{"up, acknowledgements in time", setup{prepare: func(n *reconnecttest.Network) { n.AckDelay = time.Second }}, func(r *rig) *reconnect.Delivery { r.sleep(10 * ms); return r.produce(1) }, fsm.Up, time.Second + ms, true},
		{"up, no acknowledgements", setup{mode: reconnecttest.Mute}, func(r *rig) *reconnect.Delivery { r.sleep(10 * ms); return r.produce(1) }, fsm.Up, 3*time.Second + ms, false},
		{"degraded", setup{addrs: []string{"a", "b"}}, func(r *rig) *reconnect.Delivery {
			r.sleep(10 * ms)
			r.net.Set(reconnecttest.Down, "a")
			r.wantWithin(fsm.Degraded, 2*time.Second)
			return nil
		}, fsm.Degraded, ms, false},
		{"all down", setup{}, func(r *rig) *reconnect.Delivery {
			r.sleep(10 * ms)
			r.net.Set(reconnecttest.Down)
			d := r.produce(1)
			r.wantWithin(fsm.AllDown, time.Second)
			r.sleep(time.Minute)
			r.wantWithin(fsm.AllDown, time.Second)
			return d
		}, fsm.AllDown, ms, false},
		{"probing", setup{}, func(r *rig) *reconnect.Delivery {
			r.sleep(10 * ms)
			r.net.Set(reconnecttest.Down)
			d := r.produce(1)
			r.wantWithin(fsm.AllDown, time.Second)
			r.net.Set(reconnecttest.Frozen)
			r.wantWithin(fsm.Probing, time.Second)
			return d
		}, fsm.Probing, ms, false},
		{"idle", setup{cfg: fsm.Config{IdlePolicy: fsm.IdleClose}}, func(r *rig) *reconnect.Delivery { r.sleep(5 * time.Minute); return nil }, fsm.Idle, ms, false},
		{"no client", setup{prepare: func(n *reconnecttest.Network) { n.FailOpen(errors.New("no")) }}, func(*rig) *reconnect.Delivery { return nil }, fsm.AllDown, ms, false},
		{"heartbeat running", setup{}, func(r *rig) *reconnect.Delivery {
			r.sleep(30 * time.Second)
			r.net.Set(reconnecttest.Frozen)
			r.sleep(32 * time.Second)
			return nil
		}, fsm.Up, ms, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, tc.setup, func(r *rig) {
				d := tc.reach(r)
				r.want(tc.state)
				start := time.Now()
				if err := r.sup.Close(context.Background()); err != nil {
					r.Fatal(err)
				}
				if took := time.Since(start); took > tc.limit {
					r.Errorf("Close took %s, want at most %s", took, tc.limit)
				}
				r.closedForGood()
				if d != nil && (!settled(d) || (d.Acked() == 1) != tc.acked) {
					r.Errorf("delivery settled %v, acknowledged %d", settled(d), d.Acked())
				}
			})
		})
	}
}

func (r *rig) closedForGood() {
	r.Helper()
	if !isClosed(r.sup.Done()) || r.sup.State() != fsm.Closed || !isClosed(r.sup.Refused()) || r.sup.Admit() {
		r.Errorf("after Close: done %v, state %s", isClosed(r.sup.Done()), r.sup.State())
	}
	if _, err := r.sup.Produce(batchOf(1)); !errors.Is(err, reconnect.ErrDraining) {
		r.Errorf("Produce after Close: %v", err)
	}
	if n := r.sup.Outstanding(); n != 0 {
		r.Errorf("%d outstanding after Close", n)
	}
}

// New chunks are refused while draining, waiting ones are not released before the end.
func TestClose_DrainingRefusesAndWaits(t *testing.T) {
	slow := func(n *reconnecttest.Network) { n.AckDelay = time.Second }
	bubble(t, setup{prepare: slow}, func(r *rig) {
		r.sleep(10 * ms)
		d := r.produce(1)
		refused := r.sup.Refused()
		var wg sync.WaitGroup
		for range 3 { // concurrent and repeated calls are fine
			wg.Go(func() {
				if err := r.sup.Close(context.Background()); err != nil {
					r.Errorf("Close: %v", err)
				}
			})
		}
		r.sleep(100 * ms)
		r.want(fsm.Draining)
		if _, err := r.sup.Produce(batchOf(1)); !errors.Is(err, reconnect.ErrDraining) {
			r.Errorf("Produce: %v", err)
		}
		if isClosed(refused) {
			r.Error("a waiting flush was released although its records may still be acknowledged")
		}
		wg.Wait()
		if !settled(d) || d.Acked() != 1 {
			r.Error("the drain did not wait for the acknowledgement")
		}
		r.closedForGood()
	})
}

// The context cuts the drain, in time to close the client before it ends.
func TestClose_ContextCutsTheDrain(t *testing.T) {
	bubble(t, setup{mode: reconnecttest.Mute}, func(r *rig) {
		r.sleep(10 * ms)
		d := r.produce(1)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		start := time.Now()
		if err := r.sup.Close(ctx); err != nil {
			r.Errorf("Close: %v", err)
		}
		if took := time.Since(start); took != time.Second { // CloseTimeout before the end
			r.Errorf("Close took %s, want 1s", took)
		}
		if !settled(d) {
			r.Error("the delivery was left open")
		}
		r.closedForGood()
	})
}

// A context that is done already closes at once; the loop ends on its own.
func TestClose_ContextIsDone(t *testing.T) {
	bubble(t, setup{mode: reconnecttest.Mute}, func(r *rig) {
		r.sleep(10 * ms)
		r.produce(1)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := r.sup.Close(ctx); err != nil && !errors.Is(err, context.Canceled) {
			r.Errorf("Close: %v", err)
		}
		synctest.Wait()
		r.closedForGood()
	})
}

// A client that does not release itself in time is left behind.
func TestClose_ClientHangs(t *testing.T) {
	hang := func(n *reconnecttest.Network) { n.CloseDelay = time.Hour }
	bubble(t, setup{prepare: hang}, func(r *rig) {
		r.delivered(r.produce(1), 10*ms)
		start := time.Now()
		time.AfterFunc(time.Second, func() {
			if !isClosed(r.sup.Refused()) || isClosed(r.sup.Done()) {
				r.Error("waiting flushes are held up by the client that hangs")
			}
		})
		if err := r.sup.Close(context.Background()); err != nil {
			r.Error(err)
		}
		if took := time.Since(start); took != 2*time.Second { // CloseTimeout and the grace
			r.Errorf("Close took %s", took)
		}
		if r.log.count("client not released in time") != 1 {
			r.Error("nothing was said")
		}
		time.Sleep(2 * time.Hour) // the bubble must be empty at its end
	})
}
