package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A foreign peer is a program of others that stands where the gateway does. It
// is measured if it is installed and told of as absent if it is not.
type foreign struct {
	name    string
	program string
	version []string // arguments that make it tell its version
	// job says what it does of what the gateway does.
	job string
	// files and args start it at an address before a backend; %[1]s is the
	// address, %[2]s its port, %[3]s the backend's address, %[4]d the
	// processors, and %[5]s the folder.
	files map[string]string
	args  []string
	// asks is true for those that decide by the backend's status.
	asks bool
}

var foreigners = []foreign{
	{
		name: nginx, program: "nginx", version: []string{"-v"}, job: "forwards request and answer",
		files: map[string]string{"nginx.conf": nginxConf(`location / { proxy_pass http://policy; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Authorization ""; }`)},
		args:  []string{"-p", "%[5]s", "-c", "nginx.conf"},
	},
	{
		name: nginxAsk, program: "nginx", version: []string{"-v"}, job: "asks with the headers alone, passes by status", asks: true,
		files: map[string]string{"nginx-ask.conf": nginxConf(`location / { auth_request /ask; try_files /none @pass; }
			location @pass { default_type application/json; return 200 '{"passed":true}'; }
			location = /ask { internal; proxy_pass http://policy/hooks; proxy_http_version 1.1; proxy_set_header Connection "";
				proxy_set_header Content-Length ""; proxy_pass_request_body off; }`)},
		args: []string{"-p", "%[5]s", "-c", "nginx-ask.conf"},
	},
	{
		name: haproxy, program: "haproxy", version: []string{"-v"}, job: "forwards request and answer",
		files: map[string]string{"haproxy.cfg": `global
	nbthread %[4]d
	maxconn 8192
defaults
	mode http
	timeout connect 5s
	timeout client 60s
	timeout server 60s
	http-reuse always
frontend harness
	bind %[1]s
	default_backend policy
backend policy
	http-request del-header authorization
	server policy %[3]s
`},
		args: []string{"-db", "-f", "haproxy.cfg"},
	},
	{
		name: traefik, program: "traefik", version: []string{"version"}, job: "asks with the body, passes by status", asks: true,
		files: map[string]string{
			"traefik.yaml": "entryPoints: {web: {address: '%[1]s'}}\nproviders: {file: {filename: traefik-routes.yaml}}\nping: {manualRouting: true}\nlog: {level: ERROR}\n" +
				"global: {checkNewVersion: false, sendAnonymousUsage: false}\n",
			"traefik-routes.yaml": "http:\n  routers: {ask: {rule: 'PathPrefix(`/`)', entryPoints: [web], service: ping@internal, middlewares: [policy]}}\n" +
				"  middlewares: {policy: {forwardAuth: {address: 'http://%[3]s/hooks', forwardBody: true}}}\n",
		},
		args: []string{"--configFile=traefik.yaml"},
	},
	{
		name: caddy, program: "caddy", version: []string{"version"}, job: "asks with the headers alone, passes by status", asks: true,
		files: map[string]string{"Caddyfile": "{\n\tadmin off\n\tauto_https off\n\tlog {\n\t\tlevel ERROR\n\t}\n}\nhttp://%[1]s {\n\tforward_auth %[3]s {\n\t\turi /hooks\n\t}\n\trespond \"passed\" 200\n}\n"},
		args:  []string{"run", "--config", "Caddyfile", "--adapter", "caddyfile"},
	},
}

func nginxConf(server string) string {
	return `daemon off;
worker_processes %[4]d;
pid nginx.%[2]s.pid;
error_log stderr error;
events { worker_connections 4096; }
http {
	access_log off;
	client_body_temp_path nginx-body;
	proxy_temp_path nginx-proxy;
	fastcgi_temp_path nginx-fastcgi;
	uwsgi_temp_path nginx-uwsgi;
	scgi_temp_path nginx-scgi;
	keepalive_requests 1000000000;
	client_body_buffer_size 64k;
	upstream policy { server %[3]s; keepalive 512; keepalive_requests 1000000000; }
	server { listen %[1]s; ` + server + ` }
}
`
}

// foreign starts a peer before a backend, or says why it is absent.
func (l *lab) foreign(f foreign, backend *process) (p *process, version, absent string, err error) {
	program, err := exec.LookPath(f.program)
	if err != nil {
		return nil, "", f.program + " is not installed", nil
	}
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	said, _ := exec.CommandContext(ctx, program, f.version...).CombinedOutput()
	version, _, _ = strings.Cut(strings.TrimSpace(string(said)), "\n")
	address, err := freePort()
	if err != nil {
		return nil, "", "", err
	}
	_, port, _ := strings.Cut(address, ":")
	fill := func(text string) string {
		return strings.NewReplacer("%[1]s", address, "%[2]s", port, "%[3]s", hostOf(backend.url), "%[4]d", fmt.Sprint(l.workers), "%[5]s", l.dir).Replace(text)
	}
	for name, text := range f.files {
		if err := l.write(name, []byte(fill(text))); err != nil {
			return nil, "", "", err
		}
	}
	args := make([]string, len(f.args))
	for i, arg := range f.args {
		args[i] = fill(arg)
	}
	p, err = l.start(filepath.Base(strings.ReplaceAll(f.name, " ", "-")), "http://"+address+"/hooks", []string{"HOME=" + l.dir}, program, args...)
	if err != nil {
		return nil, version, err.Error(), nil
	}
	return p, version, "", nil
}

// others starts the peers of others that there are and returns their cells.
func (l *lab) others(backend *process, r *Results) ([]cell, error) {
	var cells []cell
	for _, f := range foreigners {
		p, version, absent, err := l.foreign(f, backend)
		if err != nil {
			return nil, err
		}
		if absent != "" {
			r.Peers[f.name] = "absent: " + absent
			continue
		}
		r.Peers[f.name] = version + "; " + f.job
		c := to(f.name, p, small)
		if f.asks {
			c.target.Accept = fine
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// peers is the gateway beside what else could stand in its place.
func (l *lab) peers(r *Results, p plan) error {
	s := &stage{lab: l}
	b, sink := s.backend("backend"), s.sink()
	cells := []cell{
		to(floor, b, small),
		cellOf(on, s.gateway("on", settings{chain: []string{b.url}}.everything(sink.url)), small),
		to(bare, s.proxy("fasthttp", "fasthttp", b, 1), small),
		to("net/http ReverseProxy", s.proxy("nethttp", "nethttp", b, 1), small),
	}
	if s.err != nil {
		return s.err
	}
	others, err := l.others(b, r)
	if err != nil {
		return err
	}
	return s.add(r, p, "peers", "The gateway and what could stand in its place, 0.5 KB event", append(cells, others...))
}
