package chart_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// node lays out the volumes of the gateway's container below a folder, as a
// kubelet does: files in a hidden folder, a link to that which is replaced in
// one step, and links through it. Paths in the configuration are moved below
// the folder.
type node struct {
	dir string
	// edit changes the content of a file, if it is not nil.
	edit  func(mountPath, name, content string) string
	swaps int
}

// path returns where a path of the container is.
func (n *node) path(inContainer string) string { return filepath.Join(n.dir, inContainer) }

// mount makes the volumes of the release hold what its objects say now.
func (n *node) mount(t testing.TB, all []object) {
	t.Helper()
	n.swaps++
	pod := &find(t, all, anyOf[*appsv1.Deployment]).Spec.Template.Spec
	volumes := make(map[string]corev1.VolumeSource)
	for _, v := range pod.Volumes {
		volumes[v.Name] = v.VolumeSource
	}
	for _, m := range container(t, pod).VolumeMounts {
		source, ok := volumes[m.Name]
		if !ok {
			t.Fatalf("%s is mounted and is no volume", m.Name)
		}
		delete(volumes, m.Name)
		if source.EmptyDir != nil || source.PersistentVolumeClaim != nil {
			// Whoever runs in the pod may write to it.
			if err := os.MkdirAll(n.path(m.MountPath), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(n.path(m.MountPath), 0o777); err != nil {
				t.Fatal(err)
			}
			continue
		}
		files := make(map[string]string)
		switch {
		case source.ConfigMap != nil:
			gather(t, files, all, "ConfigMap", source.ConfigMap.Name, source.ConfigMap.Items)
		case source.Secret != nil:
			gather(t, files, all, "Secret", source.Secret.SecretName, source.Secret.Items)
		case source.Projected != nil:
			for _, s := range source.Projected.Sources {
				if s.ConfigMap != nil {
					gather(t, files, all, "ConfigMap", s.ConfigMap.Name, s.ConfigMap.Items)
				} else {
					gather(t, files, all, "Secret", s.Secret.Name, s.Secret.Items)
				}
			}
		}
		n.write(t, m.MountPath, files)
	}
	for name := range volumes {
		t.Errorf("the volume %s is not mounted", name)
	}
}

// write replaces the content of one volume in one step.
func (n *node) write(t testing.TB, mountPath string, files map[string]string) {
	t.Helper()
	dir := n.path(mountPath)
	version := fmt.Sprintf("..%d", n.swaps)
	if err := os.MkdirAll(filepath.Join(dir, version), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		content = strings.ReplaceAll(content, "/etc/ahp-gateway/", n.path("/etc/ahp-gateway")+"/")
		if n.edit != nil {
			content = n.edit(mountPath, name, content)
		}
		if err := os.WriteFile(filepath.Join(dir, version, name), []byte(content), 0o440); err != nil {
			t.Fatal(err)
		}
	}
	old, _ := os.Readlink(filepath.Join(dir, "..data"))
	if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, there := files[e.Name()]; !there && !strings.HasPrefix(e.Name(), "..") {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	if old != "" {
		if err := os.RemoveAll(filepath.Join(dir, old)); err != nil {
			t.Fatal(err)
		}
	}
}

// gather adds the files of a ConfigMap or Secret. One that the chart does not
// make is the operator's, and holds what that would have to.
func gather(t testing.TB, files map[string]string, all []object, kind, name string, items []corev1.KeyToPath) {
	t.Helper()
	data := theirs(t)
	for _, o := range all {
		switch typed := o.typed.(type) {
		case *corev1.ConfigMap:
			if kind == "ConfigMap" && typed.Name == name {
				data = typed.Data
			}
		case *corev1.Secret:
			if kind == "Secret" && typed.Name == name {
				data = typed.StringData
			}
		}
	}
	if items == nil {
		for key, content := range data {
			add(t, files, key, content)
		}
	}
	for _, item := range items {
		content, ok := data[item.Key]
		if !ok {
			t.Fatalf("%s %s has no key %s", kind, name, item.Key)
		}
		add(t, files, item.Path, content)
	}
}

func add(t testing.TB, files map[string]string, path, content string) {
	t.Helper()
	if _, twice := files[path]; twice {
		t.Fatalf("two sources of one volume have a file %s", path)
	}
	files[path] = content
}

// theirs returns what ConfigMaps and Secrets of the operator hold, of any name.
func theirs(t testing.TB) map[string]string {
	t.Helper()
	pair, err := certificate()
	if err != nil {
		t.Fatal(err)
	}
	const digest = "5648bf763da03b47c4318a14ff7279d54bfb9f7d419572d78f3c461dc466d718"
	const registration = `registration: {protocolVersion: "0.1", hooks: [{id: com.example.policy, transport: {type: http, url: "https://policy.example.com/ahp"}, subscriptions: [{events: [tool.before], mode: intercept, timeoutMs: 750, failurePolicy: fail-closed}]}]}`
	const tenant = "id: globex\nkeys: [{sha256: " + digest + "}]\n" + registration + "\n"
	const file = "listen: :8787\nadmin: :8788\ntenants:\n  - {id: globex, keys: [{sha256: " + digest + "}], " + registration + "}\n"
	return map[string]string{
		"tls.crt": pair[0], "tls.key": pair[1], "ca.crt": pair[0], "bundle.pem": pair[0],
		"password": "a password of the operator's", "key": "k-0123456789abcdef0123456789abcdef", "policy-token": "a-token",
		"tenant.yaml": tenant, "ahp.yaml": file, "gateway.yaml": file,
	}
}

// certificate returns a certificate for loopback that is its own root, and its key.
var certificate = sync.OnceValues(func() (pair [2]string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gateway"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return pair, err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return pair, err
	}
	pair[0] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	pair[1] = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	return pair, nil
})
