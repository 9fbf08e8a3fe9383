package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// exportTimeout bounds one export where the environment does not. The SDK's own
// default is half a minute, in which a dead collector would hold the queue up.
const exportTimeout = 5 * time.Second

// exporterNames returns the exporters that a variable lists, each once: "otlp"
// or "console". "none" and what else is named in ignored stand for nothing.
func exporterNames(variable string, ignored ...string) ([]string, error) {
	var names []string
	for name := range strings.SplitSeq(env(variable), ",") {
		name = strings.TrimSpace(name)
		switch {
		case name == "", name == "none", slices.Contains(ignored, name), slices.Contains(names, name):
		case name == "otlp", name == "console":
			names = append(names, name)
		default:
			return nil, fmt.Errorf("telemetry: %s: unknown exporter %.64q, want otlp, console or none", variable, name)
		}
	}
	return names, nil
}

// otlpProtocol returns "grpc" or "http/protobuf", the default, as the variable
// of a signal or else the one of all signals says.
func otlpProtocol(variable string) (string, error) {
	protocol := env(variable)
	if protocol == "" {
		variable = "OTEL_EXPORTER_OTLP_PROTOCOL"
		protocol = env(variable)
	}
	switch protocol {
	case "":
		return "http/protobuf", nil
	case "grpc", "http/protobuf":
		return protocol, nil
	default:
		return "", fmt.Errorf("telemetry: %s: unknown protocol %.64q, want grpc or http/protobuf", variable, protocol)
	}
}
