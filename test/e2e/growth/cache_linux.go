package main

import (
	"fmt"
	"os"
	"syscall"
)

// dontNeed is POSIX_FADV_DONTNEED.
const dontNeed = 4

// evict has a file read from the disk by who opens it next. In the page cache a file that was just written lies in pieces of up
// to 2 MB, and a process that touches a byte has the whole piece in its RSS; one that was read lies in small pieces.
func evict(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := f.Sync(); err != nil {
		return err
	}
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); errno != 0 {
		return fmt.Errorf("evicting %s: %w", path, errno)
	}
	return nil
}
