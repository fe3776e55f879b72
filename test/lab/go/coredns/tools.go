//go:build tools

// Package tools names the programs that the lab builds from the CoreDNS module,
// so that go.mod and go.sum pin every module they need.
package tools

import _ "github.com/coredns/coredns"
