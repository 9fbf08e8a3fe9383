//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// unpackImage lays out the image's files as a container's root, and returns it and
// how the image says it is run.
func unpackImage(t *testing.T) (root string, command, health []string, user string) {
	t.Helper()
	img, err := tarball.ImageFromPath(filepath.Join(builtImage(t), "docker.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	root = t.TempDir()
	// Whoever the program runs as must find the way to it.
	for dir := root; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	all := unpackedFiles(t, layers[0])
	for _, path := range slices.Sorted(maps.Keys(all)) {
		e, at := all[path], filepath.Join(root, path)
		if e.data == nil {
			err = os.Mkdir(at, 0o700)
		} else {
			err = os.WriteFile(at, e.data, 0o600)
		}
		if err := errors.Join(err, os.Chmod(at, fs.FileMode(e.mode)), os.Chown(at, e.owner, e.owner)); err != nil {
			t.Fatal(err)
		}
	}
	return root, slices.Concat(c.Config.Entrypoint, c.Config.Cmd), c.Config.Healthcheck.Test[1:], c.Config.User
}

// The image's files are a whole root: as its user, without any capability, and
// with nothing that can be written but the folder of its state, the image's own
// command serves and its own health check succeeds.
func TestContainer(t *testing.T) {
	needRoot(t)
	for _, program := range []string{"unshare", "nsenter", "setpriv"} {
		need(t, program)
	}
	root, command, health, user := unpackImage(t)
	if user != "65532:65532" {
		t.Fatalf("the image's user is %s", user)
	}
	configuration, state := t.TempDir(), t.TempDir()
	admin := "127.0.0.1:" + strconv.Itoa(freePort(t))
	put(t, filepath.Join(configuration, "gateway.yaml"), "listen: 127.0.0.1:0\nadmin: "+admin+"\nregistration: hooks.json\naudit: {file: /var/lib/ahp-gateway/audit.jsonl}\n")
	put(t, filepath.Join(configuration, "hooks.json"), registration(denier(t)))
	if err := errors.Join(os.Chmod(configuration, 0o755), os.Chmod(state, 0o700), os.Chown(state, nonroot, nonroot)); err != nil {
		t.Fatal(err)
	}
	// chroot gives up root after it has changed it; setpriv takes away what is left
	// before that, but for what chroot needs.
	cmd := exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "sh", "-ec", `
root=$1 configuration=$2 state=$3; shift 3
mount --bind "$root" "$root"
mount --bind "$configuration" "$root/etc/ahp-gateway"
mount -o remount,bind,ro "$root/etc/ahp-gateway"
mount --bind "$state" "$root/var/lib/ahp-gateway"
mount -o remount,bind,ro "$root"
exec env -i PATH="$PATH" setpriv --bounding-set=-all,+sys_chroot,+setuid,+setgid --no-new-privs \
	chroot --userspec=65532:65532 --groups= "$root" "$@"
`, "sh", root, configuration, state}, append(command, "--state-dir", "/var/lib/ahp-gateway")...)...)
	g := start(t, cmd)

	pid := strconv.Itoa(cmd.Process.Pid)
	process, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Join(strings.Fields(string(process)), " ")
	for _, want := range []string{"Name: ahp-gateway", "Uid: 65532 65532 65532 65532", "Gid: 65532 65532 65532 65532", "Groups: NStgid:", "CapEff: 0000000000000000", "CapPrm: 0000000000000000", "NoNewPrivs: 1"} {
		if !strings.Contains(fields, want) {
			t.Errorf("the process has no %q; it is\n%s", want, process)
		}
	}
	mounts, err := os.ReadFile("/proc/" + pid + "/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" / ro,", " /etc/ahp-gateway ro,", " /var/lib/ahp-gateway rw,"} {
		if !strings.Contains(string(mounts), want) {
			t.Errorf("the process has no mount %q; its mounts are\n%s", want, mounts)
		}
	}

	inside := func(args ...string) (string, int) {
		t.Helper()
		run := exec.Command("nsenter", append([]string{"--target", pid, "--mount", "--root", "--setuid", "65532", "--setgid", "65532"}, args...)...)
		run.Env = []string{}
		out, err := run.CombinedOutput()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		return string(out), run.ProcessState.ExitCode()
	}
	if got := status(t, "http://"+admin+"/readyz"); got != 200 {
		t.Errorf("/readyz = %d; want 200", got)
	}
	if out, code := inside(health...); code != 0 || out != "ready\n" {
		t.Errorf("the image's health check = %d, %s; want 0 and that it is ready", code, out)
	}
	if out, code := inside(command[0], "send", "--url", g.url, "--command", "git push --force"); code != 2 || !strings.Contains(out, "Not here.") {
		t.Errorf("an event = %d, %s; want the deny of the backend", code, out)
	}
	// What the image has for connections to the world.
	if out, code := inside(command[0], "send", "--url", "https://127.0.0.1:1", "--ca-file", "/etc/ssl/certs/ca-certificates.crt", "--command", "x"); code != 1 || !strings.Contains(out, "connection refused") {
		t.Errorf("an event with the image's roots = %d, %s; want that they are read and nothing listens", code, out)
	}
	if out, code := inside(command[0], "man", "--dir", "/etc/ahp-gateway/man"); code != 1 || !strings.Contains(out, "read-only file system") {
		t.Errorf("writing into the root = %d, %s; want that it is read-only", code, out)
	}
	if _, err := os.Stat(filepath.Join(state, "audit.jsonl")); err != nil {
		t.Errorf("the folder of the state: %v; want the decision log there", err)
	}
	t.Log(fmt.Sprint("served as 65532 on a read-only root, at ", g.url))
}
