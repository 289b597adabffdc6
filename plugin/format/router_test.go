package format

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"out_kafka_reconnect/plugin/chunk"
)

func newRouter(t *testing.T, c RouterConfig) *Router {
	t.Helper()
	r, err := NewRouter(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRouter_Topic(t *testing.T) {
	listed := RouterConfig{Topics: []string{"alpha", "beta", " b"}, TopicKey: "router"}
	dynamic := listed
	dynamic.DynamicTopic, dynamic.MaxDynamicTopics = true, 100
	long := strings.Repeat("x", 249)
	tests := []struct {
		name    string
		config  RouterConfig
		in      []byte
		want    string
		refusal Refusal
	}{
		{"no topic key", RouterConfig{Topics: []string{"alpha", "beta"}}, fields(str("router"), str("beta")), "alpha", NotRefused},
		{"listed", listed, fields(str("router"), str("beta")), "beta", NotRefused},
		{"default by name", listed, fields(str("router"), str("alpha")), "alpha", NotRefused},
		{"listed with a blank", listed, fields(str("router"), str(" b")), " b", NotRefused},
		{"not listed", listed, fields(str("router"), str("gamma")), "alpha", NotRefused},
		{"a listed name's beginning", listed, fields(str("router"), str("bet")), "alpha", NotRefused},
		{"a listed name and more", listed, fields(str("router"), str("betas")), "alpha", NotRefused},
		{"other case", listed, fields(str("router"), str("Beta")), "alpha", NotRefused},
		{"empty", listed, fields(str("router"), str("")), "alpha", NotRefused},
		{"absent", listed, fields(str("rout"), str("beta"), str("routers"), str("beta")), "alpha", NotRefused},
		{"empty record", listed, fields(), "alpha", NotRefused},
		{"integer", listed, fields(str("router"), num(7)), "alpha", NotRefused},
		{"nil", listed, fields(str("router"), "\xc0"), "alpha", NotRefused},
		{"bin", listed, fields(str("router"), bin("beta")), "alpha", NotRefused},
		{"bin as the name", listed, fields(bin("router"), str("beta")), "beta", NotRefused},
		{"nested", listed, fields(str("a"), string(fields(str("router"), str("beta")))), "alpha", NotRefused},
		{"first text decides", listed, fields(str("router"), num(1), str("router"), str("beta"), str("router"), str("alpha")), "beta", NotRefused},
		{"first text decides, not listed", listed, fields(str("router"), str("x"), str("router"), str("beta")), "alpha", NotRefused},
		{"behind other keys", listed, fields(num(1), num(2), "\xc0", "\xc0", arr(num(1)), "\x80", str("router"), str("beta")), "beta", NotRefused},
		{"dynamic", dynamic, fields(str("router"), str("Team.a_1-x")), "Team.a_1-x", NotRefused},
		{"dynamic, listed", dynamic, fields(str("router"), str(" b")), " b", NotRefused},
		{"dynamic, the default's beginning", dynamic, fields(str("router"), str("al")), "al", NotRefused},
		{"dynamic, other case of a listed name", dynamic, fields(str("router"), str("BETA")), "BETA", NotRefused},
		{"dynamic, nested", dynamic, fields(str("a"), string(fields(str("router"), str("x")))), "alpha", NotRefused},
		{"dynamic, bin", dynamic, fields(str("router"), bin("x")), "alpha", NotRefused},
		{"dynamic, first text decides", dynamic, fields(str("router"), num(1), str("router"), str("x"), str("router"), str("y")), "x", NotRefused},
		{"dynamic, 249 bytes", dynamic, fields(str("router"), str(long)), long, NotRefused},
		{"dynamic, 250 bytes", dynamic, fields(str("router"), str(long+"x")), "alpha", RefusedName},
		{"dynamic, comma", dynamic, fields(str("router"), str("a,b")), "alpha", RefusedName},
		{"dynamic, blank", dynamic, fields(str("router"), str("a b")), "alpha", RefusedName},
		{"dynamic, not ASCII", dynamic, fields(str("router"), str("é")), "alpha", RefusedName},
		{"dynamic, dot", dynamic, fields(str("router"), str(".")), "alpha", RefusedName},
		{"dynamic, two dots", dynamic, fields(str("router"), str("..")), "alpha", RefusedName},
		{"dynamic, three dots", dynamic, fields(str("router"), str("...")), "...", NotRefused},
		{"dynamic, empty", dynamic, fields(str("router"), str("")), "alpha", NotRefused},
		{"dynamic, integer", dynamic, fields(str("router"), num(7)), "alpha", NotRefused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRouter(t, tt.config)
			for range 2 { // the second time known names are met
				var out Route
				if err := r.Route(tt.in, &out); err != nil {
					t.Fatal(err)
				}
				if out.Topic != tt.want || out.Refusal != tt.refusal || (out.Refused != nil) != (tt.refusal != NotRefused) {
					t.Errorf("topic %q, refusal %d of %q; want %q, %d", out.Topic, out.Refusal, out.Refused, tt.want, tt.refusal)
				}
				if out.HasKey || out.Key != nil {
					t.Errorf("key %q; want none", out.Key)
				}
			}
		})
	}
}

func TestRouter_Key(t *testing.T) {
	tests := []struct {
		name         string
		key, field   string
		in           []byte
		want         string
		without, own bool // no key; a key that is part of the record
	}{
		{"none", "", "", fields(str("uuid"), str("k1")), "", true, false},
		{"literal", "dflt", "", fields(str("dflt"), str("k1")), "dflt", false, false},
		{"field", "dflt", "uuid", fields(str("uuid"), str("k1")), "k1", false, true},
		{"field alone", "", "uuid", fields(str("uuid"), str("k1")), "k1", false, true},
		{"field absent", "dflt", "uuid", fields(str("a"), num(1)), "dflt", false, false},
		{"field absent, no literal", "", "uuid", fields(str("a"), num(1)), "", true, false},
		{"integer", "dflt", "uuid", fields(str("uuid"), num(42)), "dflt", false, false},
		{"bin", "dflt", "uuid", fields(str("uuid"), bin("k1")), "dflt", false, false},
		{"integer, then text", "dflt", "uuid", fields(str("uuid"), num(42), str("uuid"), str("k2"), str("uuid"), str("k3")), "k2", false, true},
		{"empty", "dflt", "uuid", fields(str("uuid"), str("")), "", false, true},
		{"nested", "", "uuid", fields(str("a"), string(fields(str("uuid"), str("k1")))), "", true, false},
		{"bytes as they are", "", "uuid", fields(str("uuid"), str("\xff\"é")), "\xff\"é", false, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRouter(t, RouterConfig{Topics: []string{"alpha"}, MessageKey: tt.key, MessageKeyField: tt.field})
			var out Route
			if err := r.Route(tt.in, &out); err != nil {
				t.Fatal(err)
			}
			if out.HasKey == tt.without || (out.Key == nil) != tt.without || string(out.Key) != tt.want {
				t.Errorf("key %q, has key: %v; want %q, %v", out.Key, out.HasKey, tt.want, !tt.without)
			}
			if tt.own && cap(out.Key) != len(out.Key) {
				t.Error("appending to the key would write into the chunk")
			}
		})
	}
}

func TestRouter_TopicAndKeyInOnePass(t *testing.T) {
	c := RouterConfig{Topics: []string{"alpha", "beta"}, TopicKey: "f", MessageKeyField: "f"}
	var out Route
	if err := newRouter(t, c).Route(fields(str("f"), str("beta")), &out); err != nil {
		t.Fatal(err)
	}
	if out.Topic != "beta" || string(out.Key) != "beta" || !out.HasKey {
		t.Errorf("topic %q, key %q; want beta for both", out.Topic, out.Key)
	}
}

func TestRouter_DynamicLimit(t *testing.T) {
	for _, limit := range []int{0, 3} {
		r := newRouter(t, RouterConfig{Topics: []string{"alpha"}, TopicKey: "r", DynamicTopic: true, MaxDynamicTopics: limit})
		// The second round meets the same names: the known ones must stay known.
		for range 2 {
			for i := range 6 {
				name := "t" + strconv.Itoa(i)
				want, refusal := name, NotRefused
				if i >= limit {
					want, refusal = "alpha", RefusedLimit
				}
				var out Route
				if err := r.Route(fields(str("r"), str(name)), &out); err != nil {
					t.Fatal(err)
				}
				if out.Topic != want || out.Refusal != refusal || refusal != NotRefused && string(out.Refused) != name {
					t.Errorf("limit %d: %s goes to %q, refusal %d of %q", limit, name, out.Topic, out.Refusal, out.Refused)
				}
			}
		}
	}
}

func TestRouter_Errors(t *testing.T) {
	if _, err := NewRouter(RouterConfig{}); !errors.Is(err, ErrNoTopic) {
		t.Errorf("NewRouter: %v; want ErrNoTopic", err)
	}
	r := newRouter(t, RouterConfig{Topics: []string{"alpha"}, TopicKey: "r", MessageKey: "k"})
	whole := fields(num(1), num(2), str("a"), arr(num(1), str("x")), str("r"), str("alpha"))
	for n := range whole {
		var out Route
		if err := r.Route(whole[:n:n], &out); err == nil || out.Topic != "alpha" || string(out.Key) != "k" {
			t.Errorf("first %d bytes: %+v, %v; want an error and the defaults", n, out, err)
		}
	}
	if err := r.Route([]byte("\x90"), new(Route)); !errors.Is(err, errNotMap) {
		t.Errorf("an array: %v; want errNotMap", err)
	}
	if err := r.Route([]byte("\x81\xc1\x01"), new(Route)); !errors.Is(err, chunk.ErrReserved) {
		t.Errorf("a reserved byte: %v; want ErrReserved", err)
	}
}

func TestRouter_Allocations(t *testing.T) {
	r := newRouter(t, RouterConfig{
		Topics: []string{"alpha", "beta"}, TopicKey: "r", DynamicTopic: true, MaxDynamicTopics: 2, MessageKeyField: "k",
	})
	bodies := make([][]byte, 0, 6)
	for _, name := range []string{"alpha", "beta", "gamma", "delta", "too many", "epsilon"} {
		bodies = append(bodies, fields(str("k"), str("key"), str("r"), str(name)))
	}
	var out Route
	route := func() {
		for _, body := range bodies {
			if err := r.Route(body, &out); err != nil {
				t.Fatal(err)
			}
		}
	}
	route()
	if n := testing.AllocsPerRun(10, route); n != 0 {
		t.Errorf("%v allocations; want none", n)
	}
}
