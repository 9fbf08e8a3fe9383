package chart_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	chart     = "../ahp-gateway"
	root      = "../../.." // of the gateway's own module
	namespace = "agents"
)

var update = flag.Bool("update", false, "write golden files, values.schema.json and README.md of the chart anew")

// scratch is a folder for the tests of one run.
var scratch string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		var err error
		if scratch, err = os.MkdirTemp("", "chart"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(scratch)
		return m.Run()
	}())
}

// built returns the path of the gateway's binary, made from the tree.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "ahp-gateway")
	cmd := exec.Command("go", "build", "-o", path, "./cmd/ahp-gateway")
	cmd.Dir = root
	return path, run(cmd)
})

// helmPath returns the path of helm in the version of go.mod.
var helmPath = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "tool", "-n", "helm").Output()
	return strings.TrimSpace(string(out)), err
})

// run runs cmd, and returns what it wrote on both outputs if it fails.
func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// helm returns what helm writes on standard output, and as an error what it
// writes on standard error where it fails. It knows of no cluster.
func helm(t testing.TB, args ...string) (string, error) {
	t.Helper()
	path, err := helmPath()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+scratch, "HELM_CONFIG_HOME="+scratch, "HELM_DATA_HOME="+scratch, "KUBECONFIG=/nonexistent")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", errors.New(stderr.String() + stdout.String())
	}
	return stdout.String(), nil
}

// cases returns the value files of testdata, by name.
func cases(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("testdata/values has %d files (%v); want at least 12", len(files), err)
	}
	named := make(map[string]string)
	for _, file := range files {
		named[strings.TrimSuffix(filepath.Base(file), ".yaml")] = file
	}
	return named
}

// templates is what helm has made, by release and value file.
var templates sync.Map

// template returns what helm makes of the chart with a value file.
func template(t testing.TB, release, values string) string {
	t.Helper()
	key := release + " " + values
	if out, ok := templates.Load(key); ok {
		return out.(string)
	}
	out, err := helm(t, "template", release, chart, "--namespace", namespace, "--values", values)
	if err != nil {
		t.Fatalf("helm template --values %s: %v", values, err)
	}
	templates.Store(key, out)
	return out
}

// object is one object of a rendered chart.
type object struct {
	source []byte
	typed  runtime.Object
}

// decoder takes objects of the kinds that the chart has, and refuses members
// that they do not have, or have twice.
var decoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, monitoringv1.AddToScheme, gatewayv1.Install, certmanagerv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

// objects decodes every object of a rendered chart.
func objects(t testing.TB, rendered string) []object {
	t.Helper()
	var all []object
	for doc := range strings.SplitSeq("\n"+rendered, "\n---") {
		empty := true
		for line := range strings.Lines(doc) {
			line = strings.TrimSpace(line)
			empty = empty && (line == "" || strings.HasPrefix(line, "#"))
		}
		if empty {
			continue
		}
		typed, _, err := decoder.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Errorf("decode: %v\n%s", err, doc)
			continue
		}
		all = append(all, object{[]byte(doc), typed})
	}
	return all
}

// find returns the only object of a type that match accepts.
func find[T runtime.Object](t testing.TB, all []object, match func(T) bool) T {
	t.Helper()
	var found []T
	for _, o := range all {
		if typed, ok := o.typed.(T); ok && match(typed) {
			found = append(found, typed)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%T: %d objects match; want 1", *new(T), len(found))
	}
	return found[0]
}

// anyOf accepts every object of its type.
func anyOf[T runtime.Object](T) bool { return true }

// needs skips the test where a program is not there; where CI is set it fails.
func needs(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// container returns the gateway's container.
func container(t testing.TB, pod *corev1.PodSpec) *corev1.Container {
	t.Helper()
	for i := range pod.Containers {
		if pod.Containers[i].Name == "gateway" {
			return &pod.Containers[i]
		}
	}
	t.Fatal("there is no container gateway")
	return nil
}
