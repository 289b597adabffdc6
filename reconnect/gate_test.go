package reconnect_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"out_kafka_reconnect/reconnect"
	"out_kafka_reconnect/reconnect/fsm"
	"out_kafka_reconnect/reconnect/reconnecttest"
)

// Flushes that follow the rule of the package comment never wait in vain: while brokers
// come and go, each is delivered or released in time.
func TestRefused_NoRefusalIsMissed(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		var stop atomic.Bool
		var delivered, released, refused atomic.Int64
		var flushes sync.WaitGroup
		for range 8 {
			flushes.Go(func() {
				for !stop.Load() {
					switch err := r.flush(3 * time.Second); {
					case err == nil:
						delivered.Add(1)
					case errors.Is(err, errReleased):
						released.Add(1)
					case errors.Is(err, errTimeout):
						r.Errorf("at %s in %s: a flush was left waiting", r.net.Now(), r.sup.State())
					default:
						refused.Add(1)
					}
					time.Sleep(7 * ms)
				}
			})
		}
		for i := range 300 {
			time.Sleep(time.Duration(50+i%7*30) * ms)
			r.net.Set(reconnecttest.Down)
			time.Sleep(time.Duration(90+i%11*20) * ms)
			r.net.Set(reconnecttest.Serving)
		}
		stop.Store(true)
		flushes.Wait()
		r.Logf("%d delivered, %d released, %d refused", delivered.Load(), released.Load(), refused.Load())
		if delivered.Load() == 0 || released.Load() == 0 || refused.Load() == 0 {
			r.Error("not all ways were gone")
		}
	})
}

var (
	errReleased = errors.New("released")
	errTimeout  = errors.New("timed out")
)

func (r *rig) flush(limit time.Duration) error {
	release := r.sup.Refused()
	d, err := r.sup.Produce(batchOf(1))
	if err != nil {
		return err
	}
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-d.Done():
		return nil
	case <-release:
		return errReleased
	case <-t.C:
		return errTimeout
	}
}

// The same in real time, with a stop in the middle of it, for the race detector.
func TestSupervisor_RealTime(t *testing.T) {
	net := reconnecttest.NewNetwork("a", "b")
	sup, err := reconnect.New(reconnect.Options{
		Config: fsm.Config{BackoffMin: ms, BackoffMax: 4 * ms, Settle: 5 * ms, KeepaliveInterval: ms, StallTimeout: 200 * ms},
		Open:   net.Open, Observer: reconnect.NopObserver{},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, net: net, sup: sup}
	stop := make(chan struct{})
	var flushes sync.WaitGroup
	for range 4 {
		flushes.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := r.flush(5 * time.Second); errors.Is(err, errTimeout) {
					t.Errorf("in %s: a flush was left waiting", sup.State())
				}
				sup.Status()
			}
		})
	}
	deadline := time.NewTimer(700 * ms)
	for i, running := 0, true; running; i++ {
		pause := time.NewTimer(5 * ms)
		select {
		case <-deadline.C:
			running = false
		case <-pause.C:
		}
		switch i % 5 {
		case 0:
			net.Set(reconnecttest.Down, "a")
		case 1:
			net.Set(reconnecttest.Down)
		case 2:
			net.Set(reconnecttest.Serving)
		case 3:
			net.Client().Fatal(fsm.ClassFatal, "fenced")
		}
	}
	if err := sup.Close(context.Background()); err != nil {
		t.Error(err)
	}
	close(stop)
	flushes.Wait()
	if n := sup.Outstanding(); n != 0 {
		t.Errorf("%d outstanding at the end", n)
	}
}

func TestAdmit_DoesNotAllocate(t *testing.T) {
	bubble(t, setup{}, func(r *rig) {
		if n := testing.AllocsPerRun(100, func() { r.sup.Admit(); r.sup.Refused() }); n != 0 {
			r.Errorf("%v allocations", n)
		}
	})
}

func BenchmarkAdmit(b *testing.B) {
	for _, mode := range []reconnecttest.Mode{reconnecttest.Serving, reconnecttest.Down} {
		net := reconnecttest.NewNetwork("a")
		net.Set(mode)
		sup, err := reconnect.New(reconnect.Options{Open: net.Open, Config: fsm.Config{BackoffMin: time.Hour, BackoffMax: time.Hour}})
		if err != nil {
			b.Fatal(err)
		}
		want := fsm.Up
		if mode == reconnecttest.Down {
			want = fsm.AllDown
		}
		for deadline := time.Now().Add(5 * time.Second); sup.State() != want && time.Now().Before(deadline); {
			time.Sleep(ms)
		}
		b.Run(sup.State().String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sup.Admit()
			}
		})
		b.Run(sup.State().String()+"_parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					sup.Admit()
				}
			})
		})
		if err := sup.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
