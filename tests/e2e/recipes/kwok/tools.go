//go:build tools

// Names the program, so that `go mod tidy` keeps its module.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
