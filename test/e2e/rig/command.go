package rig

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/signal"
	"syscall"
)

// Command runs a command of settings S until it is done or interrupted, and returns its exit status: 2 if parse, which tells
// why itself, refuses the arguments, and 1 if the work fails, which is told behind the name.
func Command[S any](name string, args []string, stderr io.Writer,
	parse func(args []string, stderr io.Writer) (S, error), work func(context.Context, S) error,
) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if err := work(ctx, s); err != nil {
		_, _ = fmt.Fprintln(stderr, name+":", err)
		return 1
	}
	return 0
}
