package chart_test

import (
	"crypto/tls"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	sigsyaml "sigs.k8s.io/yaml"
)

// Whatever an object says of another one is true of it: selectors select, ports
// are there, and what is named exists.
func TestObjectsFitTogether(t *testing.T) {
	for name, values := range cases(t) {
		t.Run(name, func(t *testing.T) {
			all := objects(t, template(t, name, values))
			d := find(t, all, anyOf[*appsv1.Deployment])
			pod := labels.Set(d.Spec.Template.Labels)
			selects := func(what string, s *metav1.LabelSelector) {
				t.Helper()
				selector, err := metav1.LabelSelectorAsSelector(s)
				if err != nil {
					t.Fatal(err)
				}
				if selector.Empty() || !selector.Matches(pod) {
					t.Errorf("%s selects %v, which the pods with %v are not", what, selector, pod)
				}
			}
			selects("the Deployment", d.Spec.Selector)
			for _, c := range d.Spec.Template.Spec.TopologySpreadConstraints {
				selects("a topology spread constraint", c.LabelSelector)
			}
			ports := make(map[string]int32)
			c := container(t, &d.Spec.Template.Spec)
			for _, p := range c.Ports {
				ports[p.Name] = p.ContainerPort
			}
			if want := (map[string]int32{"http": 8787, "private": 8788}); !maps.Equal(ports, want) {
				t.Errorf("the container has the ports %v; want %v", ports, want)
			}
			for _, p := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
				if p.HTTPGet.Port != intstr.FromString("private") {
					t.Errorf("a probe asks port %v; want the private one", p.HTTPGet.Port)
				}
			}

			services := make(map[string]*corev1.Service)
			for _, o := range all {
				switch o := o.typed.(type) {
				case *corev1.Service:
					services[o.Name] = o
					selects(o.Name, &metav1.LabelSelector{MatchLabels: o.Spec.Selector})
					want := "http"
					if strings.HasSuffix(o.Name, "-private") {
						want = "private"
					}
					if len(o.Spec.Ports) != 1 || o.Spec.Ports[0].TargetPort != intstr.FromString(want) {
						t.Errorf("%s has the ports %v; want one, to %s", o.Name, o.Spec.Ports, want)
					}
					if want == "private" && o.Spec.Type != corev1.ServiceTypeClusterIP {
						t.Errorf("the private listener's Service is of type %s", o.Spec.Type)
					}
				case *policyv1.PodDisruptionBudget:
					selects("the PodDisruptionBudget", o.Spec.Selector)
				}
			}
			if len(services) != 2 {
				t.Errorf("there are %d Services; want 2", len(services))
			}
			for _, o := range all {
				switch o := o.typed.(type) {
				case *networkingv1.NetworkPolicy:
					if !strings.HasSuffix(o.Name, "-test") {
						selects("the NetworkPolicy", &o.Spec.PodSelector)
					}
					if !slices.Equal(o.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress", "Egress"}) {
						t.Errorf("the NetworkPolicy %s is about %v; want both directions", o.Name, o.Spec.PolicyTypes)
					}
					for _, r := range o.Spec.Ingress {
						if len(r.From) == 0 || len(r.Ports) != 1 || r.Ports[0].Port == nil || ports[r.Ports[0].Port.StrVal] == 0 {
							t.Errorf("the NetworkPolicy %s lets in from %v to %v", o.Name, r.From, r.Ports)
						}
					}
				case *networkingv1.Ingress:
					for _, r := range o.Spec.Rules {
						for _, p := range r.HTTP.Paths {
							s := services[p.Backend.Service.Name]
							if s == nil || s.Spec.Ports[0].Name != p.Backend.Service.Port.Name || strings.HasSuffix(s.Name, "-private") {
								t.Errorf("the Ingress leads %s to %v", p.Path, p.Backend.Service)
							}
						}
					}
				case *gatewayv1.HTTPRoute:
					for _, r := range o.Spec.Rules {
						for _, b := range r.BackendRefs {
							s := services[string(b.Name)]
							if s == nil || b.Port == nil || s.Spec.Ports[0].Port != *b.Port || strings.HasSuffix(s.Name, "-private") {
								t.Errorf("the HTTPRoute leads to %v", b.BackendObjectReference)
							}
						}
					}
				case *autoscalingv2.HorizontalPodAutoscaler:
					if ref := o.Spec.ScaleTargetRef; ref.Kind != "Deployment" || ref.Name != d.Name || d.Spec.Replicas != nil {
						t.Errorf("the autoscaler is for %v, beside %v replicas", ref, d.Spec.Replicas)
					}
				case *monitoringv1.ServiceMonitor:
					selector, err := metav1.LabelSelectorAsSelector(&o.Spec.Selector)
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range services {
						if private := strings.HasSuffix(s.Name, "-private"); selector.Matches(labels.Set(s.Labels)) != private {
							t.Errorf("the ServiceMonitor selects %s: %v; want %v", s.Name, !private, private)
						} else if private && s.Spec.Ports[0].Name != o.Spec.Endpoints[0].Port {
							t.Errorf("the ServiceMonitor scrapes port %s", o.Spec.Endpoints[0].Port)
						}
					}
				case *monitoringv1.PodMonitor:
					selects("the PodMonitor", &o.Spec.Selector)
					if p := o.Spec.PodMetricsEndpoints[0].Port; p == nil || ports[*p] != 8788 {
						t.Errorf("the PodMonitor scrapes port %v", p)
					}
				case *certmanagerv1.Certificate:
					mounted := slices.ContainsFunc(d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool {
						return v.Secret != nil && v.Secret.SecretName == o.Spec.SecretName
					})
					s := services[o.Name]
					if !mounted || s == nil || !slices.Contains(o.Spec.DNSNames, s.Name+"."+namespace+".svc") {
						t.Errorf("the Certificate %s is for %v, and mounted: %v", o.Name, o.Spec.DNSNames, mounted)
					}
				}
			}

			memory := c.Resources.Limits.Memory().Value()
			limit := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
			if limit < 0 {
				t.Error("GOMEMLIMIT is not set")
			} else if got, err := strconv.ParseFloat(c.Env[limit].Value, 64); err != nil || math.Abs(got-0.9*float64(memory)) > 1 {
				t.Errorf("GOMEMLIMIT = %s; want nine tenths of %d", c.Env[limit].Value, memory)
			}
			if !slices.ContainsFunc(all, func(o object) bool {
				a, ok := o.typed.(*corev1.ServiceAccount)
				return ok && a.Name == d.Spec.Template.Spec.ServiceAccountName && !*a.AutomountServiceAccountToken
			}) && !strings.HasPrefix(name, "existing-config") {
				t.Errorf("there is no ServiceAccount %s", d.Spec.Template.Spec.ServiceAccountName)
			}
		})
	}
}

// A pod has the time that its shutdown can take: until it is told, to answer
// what it has accepted, and two and three seconds for the audit log and telemetry.
func TestGracePeriod(t *testing.T) {
	for name, values := range cases(t) {
		all := objects(t, template(t, name, values))
		d := find(t, all, anyOf[*appsv1.Deployment])
		drain := 25 * time.Second
		for _, o := range all {
			m, ok := o.typed.(*corev1.ConfigMap)
			if !ok || m.Data["gateway.yaml"] == "" {
				continue
			}
			var file struct{ Limits struct{ DrainTimeout string } }
			if err := sigsyaml.Unmarshal([]byte(m.Data["gateway.yaml"]), &file); err != nil {
				t.Fatal(err)
			}
			if file.Limits.DrainTimeout != "" {
				var err error
				if drain, err = time.ParseDuration(file.Limits.DrainTimeout); err != nil {
					t.Fatal(err)
				}
			}
		}
		var before time.Duration
		if l := container(t, &d.Spec.Template.Spec).Lifecycle; l != nil {
			before = time.Duration(l.PreStop.Sleep.Seconds) * time.Second
		}
		grace := time.Duration(*d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
		if least := before + drain + 5*time.Second; grace < least {
			t.Errorf("%s: the grace period is %v; want at least %v", name, grace, least)
		}
	}
}

// With client certificates on the private listener the probes need none, and
// everything else does.
func TestProbesOverTLS(t *testing.T) {
	all := objects(t, template(t, "mutual-tls", cases(t)["mutual-tls"]))
	n := &node{dir: t.TempDir(), edit: loopback}
	n.mount(t, all)
	p := start(t, n, all)
	kubelet := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	c := container(t, &find(t, all, anyOf[*appsv1.Deployment]).Spec.Template.Spec)
	get := func(path string) int {
		resp, err := kubelet.Get(p.admin + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if probe.HTTPGet.Scheme != corev1.URISchemeHTTPS || !strings.HasPrefix(p.admin, "https://") {
			t.Errorf("a probe speaks %s to %s", probe.HTTPGet.Scheme, p.admin)
		}
		if code := get(probe.HTTPGet.Path); code != http.StatusOK {
			t.Errorf("GET %s without a client certificate = %d; want 200", probe.HTTPGet.Path, code)
		}
	}
	if code := get("/metrics"); code == http.StatusOK {
		t.Error("GET /metrics without a client certificate = 200; want it to be refused")
	}
}
