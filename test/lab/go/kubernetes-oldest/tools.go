//go:build tools

// Package tools names the program of the oldest supported Kubernetes that the lab builds,
// so that go.mod and go.sum pin every module it needs.
package tools

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
