package rig

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"testing"
)

func TestCommand_ExitStatus(t *testing.T) {
	for _, test := range []struct {
		refused, failed error
		want            int
		says            string
	}{
		{nil, nil, 0, ""},
		{flag.ErrHelp, nil, 0, ""},
		{errors.New("-x is unknown"), nil, 2, ""},
		{nil, errors.New("no Kafka"), 1, "name: no Kafka\n"},
	} {
		var stderr bytes.Buffer
		worked := false
		got := Command("name", nil, &stderr, func([]string, io.Writer) (string, error) { return "s", test.refused },
			func(_ context.Context, s string) error {
				worked = s == "s"
				return test.failed
			})
		if got != test.want || stderr.String() != test.says || worked != (test.refused == nil) {
			t.Errorf("%+v: status %d, %q, worked %v", test, got, stderr.String(), worked)
		}
	}
}
