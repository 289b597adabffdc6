// Package version holds the version of the plugin.
package version

// Version is set by the linker (see the Makefile); a plain build says "dev".
var Version = "dev"
