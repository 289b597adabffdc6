package freeport

import (
	"net"
	"strconv"
	"testing"
)

func TestTake_PortsAreDistinctAndCanBeListenedOn(t *testing.T) {
	first, err := Take(20)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	second, err := Take(20)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release()

	seen := map[int]bool{}
	for _, port := range append(first.Ports(), second.Ports()...) {
		if seen[port] {
			t.Errorf("port %d was leased twice", port)
		}
		seen[port] = true
		ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			t.Errorf("listening on leased port %d: %v", port, err)
			continue
		}
		_ = ln.Close()
	}
}

func TestTake_TooManyIsAnErrorAndKeepsNothing(t *testing.T) {
	if _, err := take(4, 3); err == nil {
		t.Fatal("more ports than there are were leased")
	}
	l, err := Take(1)
	if err != nil {
		t.Fatalf("after a failed lease: %v", err)
	}
	l.Release()
	l.Release()
	(*Lease)(nil).Release()
}
