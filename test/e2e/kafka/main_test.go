package kafka

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperEnv makes the test binary start a node in the named folder, print its process, and wait to be killed.
const helperEnv = "OUT_KAFKA_RECONNECT_KAFKA_HELPER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		fmt.Println(startAndWait(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func startAndWait(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d, err := Install(ctx, "")
	if err != nil {
		return err
	}
	c, err := New(d, Options{Dir: dir})
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	fmt.Printf("pid %d\n", c.PID(1))
	<-ctx.Done()
	return ctx.Err()
}
