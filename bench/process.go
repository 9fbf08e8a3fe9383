package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// lab starts the programs that are measured, and ends them all.
type lab struct {
	ctx     context.Context
	dir     string // for binaries, configurations and what the programs write
	self    string // this program
	gateway string // the gateway's binary
	workers int    // processors that each program may use
	log     io.Writer
	running []*process
}

// process is a program under way.
type process struct {
	name string
	url  string // where it takes requests
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// startWithin is how long a program may take to listen.
const startWithin = 60 * time.Second

// start runs a program and waits until it listens. If url is empty, the program
// says where, in a line with "listening on http://…" on its standard output.
func (l *lab) start(name, url string, env []string, program string, args ...string) (*process, error) {
	cmd := exec.CommandContext(l.ctx, program, args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(l.workers))
	cmd.Env = append(cmd.Env, env...)
	cmd.Dir = l.dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	log, err := os.Create(filepath.Join(l.dir, name+".log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &process{name: name, url: url, cmd: cmd, done: make(chan struct{})}
	l.running = append(l.running, p)
	listens := make(chan string, 1)
	var read sync.WaitGroup
	read.Go(func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if _, at, ok := strings.Cut(lines.Text(), "listening on "); ok {
				select {
				case listens <- strings.TrimSpace(at):
				default:
				}
			}
		}
		_, _ = io.Copy(io.Discard, out)
	})
	go func() {
		defer close(p.done)
		read.Wait()
		_ = cmd.Wait() // how a program ends that is told to does not matter
	}()
	if url != "" {
		go func() {
			for l.ctx.Err() == nil {
				if c, err := net.Dial("tcp", hostOf(url)); err == nil {
					c.Close()
					listens <- url
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
	}
	select {
	case p.url = <-listens:
		return p, nil
	case <-p.done:
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%s ended before it listened: %s", name, strings.TrimSpace(string(said)))
	case <-time.After(startWithin):
		return nil, fmt.Errorf("%s does not listen", name)
	}
}

// stop ends a program and waits until it has.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(40 * time.Second): // longer than any of them drains
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// stopAll ends every program that is still running.
func (l *lab) stopAll() {
	for _, p := range l.running {
		p.stop()
	}
	l.running = nil
}

func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// usage is what a program and its children have used.
type usage struct {
	CPU      time.Duration // user and system, since they started
	RSS, Top int64         // bytes: now, and at most
}

// usage asks the operating system. Only Linux can be asked so far.
func (p *process) usage() (usage, error) {
	var u usage
	for _, pid := range append(children(p.cmd.Process.Pid), p.cmd.Process.Pid) {
		ran, err := ran(pid)
		if err != nil {
			return u, fmt.Errorf("CPU time cannot be measured: %w", err)
		}
		u.CPU += ran
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return u, err
		}
		u.RSS += kilobytes(string(status), "VmRSS:")
		u.Top += kilobytes(string(status), "VmHWM:")
	}
	return u, nil
}

// ran returns how long the threads of a process have run, in user and system
// mode. A thread that has ended is not counted any more; those of the programs
// that are measured do not end. A kernel that does not tell of threads tells of
// the process, in hundredths of a second.
func ran(pid int) (total time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	if len(threads) == 0 {
		return ticks(pid)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(ns)
	}
	return total, nil
}

// ticks returns the same of a process, those of its threads that have ended
// included.
func ticks(pid int) (total time.Duration, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name, in brackets, may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(n) * (time.Second / 100) // USER_HZ
	}
	return total, nil
}

func kilobytes(status, name string) int64 {
	_, rest, _ := strings.Cut(status, name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[0], 10, 64)
	return n << 10
}

// children returns the ids of a process's descendants.
func children(pid int) []int {
	var all []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(append(all, child), children(child)...)
			}
		}
	}
	return all
}

// allocations are the heap allocations of a Go program since it started.
type allocations struct{ Count, Bytes float64 }

// allocationsOf reads them from a gateway's metrics.
func allocationsOf(admin string) (a allocations, err error) {
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch name {
		case "go_memstats_mallocs_total":
			a.Count, err = strconv.ParseFloat(value, 64)
		case "go_memstats_alloc_bytes_total":
			a.Bytes, err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return a, err
		}
	}
	if a.Count == 0 {
		return a, fmt.Errorf("%s/metrics does not tell of allocations", admin)
	}
	return a, lines.Err()
}
