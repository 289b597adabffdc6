//go:build !cgo

package main

// libraryNames needs librdkafka, and so cgo.
func libraryNames() ([]byte, error) { return nil, errNoLibrary }
