package chart_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// server is a Kubernetes API server of one's own.
type server struct {
	url, kubeconfig string
	client          *http.Client
}

const serverToken = "the-token-of-the-tests"

// startServer starts etcd and kube-apiserver, and ends them with the test.
func startServer(t *testing.T, etcd, apiserver string) *server {
	t.Helper()
	dir := t.TempDir()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"sa.key":     pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		"sa.pub":     pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		"tokens.csv": []byte(serverToken + ",operator,operator,system:masters\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store, peer, port := "http://127.0.0.1:"+freePort(t), "http://127.0.0.1:"+freePort(t), freePort(t)
	background(t, dir, "etcd", etcd, "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls="+store, "--advertise-client-urls="+store,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	background(t, dir, "apiserver", apiserver, "--etcd-servers="+store, "--bind-address=127.0.0.1", "--advertise-address=10.0.0.1",
		"--secure-port="+port, "--cert-dir="+filepath.Join(dir, "certs"), "--token-auth-file="+filepath.Join(dir, "tokens.csv"),
		"--service-account-key-file="+filepath.Join(dir, "sa.pub"), "--service-account-signing-key-file="+filepath.Join(dir, "sa.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=RBAC")
	s := &server{
		url: "https://127.0.0.1:" + port, kubeconfig: filepath.Join(dir, "kubeconfig"),
		// Its certificate is made at its start, for loopback.
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
	}
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: test, user: {token: %s}}]
`, s.url, serverToken)
	if err := os.WriteFile(s.kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(time.Minute)
	for tick := time.NewTicker(100 * time.Millisecond); ; <-tick.C {
		if code, _ := s.call(t, http.MethodGet, "/readyz", nil); code == http.StatusOK {
			return s
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(dir, "apiserver.log"))
			t.Fatalf("kube-apiserver is not ready:\n%.4000s", log)
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// background runs a program until the test ends.
func background(t *testing.T, dir, name, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		log.Close()
	})
}

// call sends one request and returns the status and the answer.
func (s *server) call(t *testing.T, method, path string, body any) (int, string) {
	t.Helper()
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	req, err := http.NewRequest(method, s.url+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+serverToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(answer)
}

func (s *server) create(t *testing.T, path string, body any) {
	t.Helper()
	if code, answer := s.call(t, http.MethodPost, path, body); code != http.StatusCreated {
		t.Fatalf("POST %s: %d %s", path, code, answer)
	}
}

// A real API server takes what helm installs and upgrades, and pods of it in a
// namespace that enforces the restricted standard. No pod runs: there is no node.
// It needs KUBE_APISERVER and ETCD, the paths of the two programs; make
// chart-api has them.
func TestServer(t *testing.T) {
	apiserver, etcd := os.Getenv("KUBE_APISERVER"), os.Getenv("ETCD")
	if apiserver == "" || etcd == "" {
		t.Skip("KUBE_APISERVER and ETCD are not set")
	}
	s := startServer(t, etcd, apiserver)
	for file, module := range definitions {
		data, err := os.ReadFile(filepath.Join(module.dir(t), file))
		if err != nil {
			t.Fatal(err)
		}
		var crd map[string]any
		if err := sigsyaml.Unmarshal(data, &crd); err != nil {
			t.Fatal(err)
		}
		s.create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
	}
	for kind, plural := range map[string]string{"ServiceMonitor": "servicemonitors", "PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules"} {
		// Open, because the definitions of the Prometheus operator cannot be had as a module.
		s.create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", map[string]any{
			"metadata": map[string]any{"name": plural + ".monitoring.coreos.com"},
			"spec": map[string]any{
				"group": "monitoring.coreos.com", "scope": "Namespaced", "names": map[string]any{"kind": kind, "plural": plural},
				"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
					"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
				}}},
			},
		})
	}
	for _, path := range []string{"gateway.networking.k8s.io/v1/httproutes", "cert-manager.io/v1/certificates", "monitoring.coreos.com/v1/prometheusrules", "monitoring.coreos.com/v1/podmonitors", "monitoring.coreos.com/v1/servicemonitors"} {
		deadline := time.Now().Add(30 * time.Second)
		for tick := time.NewTicker(50 * time.Millisecond); ; <-tick.C {
			code, answer := s.call(t, http.MethodGet, "/apis/"+path, nil)
			if code == http.StatusOK {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d %s", path, code, answer)
			}
		}
	}
	s.create(t, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{
		"name": namespace, "labels": map[string]string{"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"},
	}})
	for _, account := range []string{"default", "gateways"} {
		s.create(t, "/api/v1/namespaces/"+namespace+"/serviceaccounts", map[string]any{"metadata": map[string]any{"name": account}})
	}
	s.create(t, "/apis/node.k8s.io/v1/runtimeclasses", map[string]any{"metadata": map[string]any{"name": "gvisor"}, "handler": "runsc"})

	pods := "/api/v1/namespaces/" + namespace + "/pods?dryRun=All&fieldValidation=Strict"
	if code, answer := s.call(t, http.MethodPost, pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}); code != http.StatusForbidden {
		t.Errorf("a pod without a security context: %d %s; want it to be forbidden", code, answer)
	}
	for name, values := range cases(t) {
		args := []string{name, chart, "--namespace", namespace, "--values", values, "--kubeconfig", s.kubeconfig}
		for _, command := range [][]string{{"install", "--dry-run=server"}, {"install"}, {"upgrade", "--dry-run=server"}, {"upgrade", "--set", "replicaCount=5"}} {
			if _, err := helm(t, append(append([]string{command[0]}, args...), command[1:]...)...); err != nil {
				t.Errorf("helm %v %s: %v", command, name, err)
			}
		}
		for _, o := range objects(t, template(t, name, values)) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "of-the-deployment"}}
			switch typed := o.typed.(type) {
			case *appsv1.Deployment:
				pod.Spec = typed.Spec.Template.Spec
			case *corev1.Pod:
				pod.Spec = typed.Spec
			default:
				continue
			}
			if code, answer := s.call(t, http.MethodPost, pods, pod); code != http.StatusCreated {
				t.Errorf("%s: a pod is answered %d %s", name, code, answer)
			}
		}
	}
	_, version := s.call(t, http.MethodGet, "/version", nil)
	t.Logf("helm install, upgrade and both with --dry-run=server, for %d value files, by %s", len(cases(t)), version)
}
