{{/* Values that are each good and together are not. Said here, before a pod finds out. */}}
{{- define "ahp-gateway.check" -}}
{{- $v := .Values -}}
{{- range $name, $t := dict "tls" $v.tls "adminTLS" $v.adminTLS -}}
{{- if and $t.enabled (not $t.secretName) (not $v.certManager.enabled) -}}
{{- fail (printf "%s.enabled without a certificate: write %s.secretName, or certManager.enabled" $name $name) -}}
{{- end -}}
{{- if and $t.clientCA.name (not $t.enabled) -}}
{{- fail (printf "%s.clientCA without %s.enabled: client certificates come with TLS only" $name $name) -}}
{{- end -}}
{{- end -}}
{{- if and $v.adminTLS.names (not $v.adminTLS.clientCA.name) -}}
{{- fail "adminTLS.names without adminTLS.clientCA.name: no client certificate would be asked for" -}}
{{- end -}}
{{- if and $v.certManager.enabled (not $v.certManager.issuerRef.name) -}}
{{- fail "certManager.enabled without an issuer: write certManager.issuerRef.name" -}}
{{- end -}}
{{- if and $v.certManager.enabled (not (or (and $v.tls.enabled (not $v.tls.secretName)) (and $v.adminTLS.enabled (not $v.adminTLS.secretName)))) -}}
{{- fail "certManager.enabled, and nothing to issue: set tls.enabled or adminTLS.enabled without a secretName" -}}
{{- end -}}
{{- if and $v.existingConfig.name $v.tenants -}}
{{- fail "tenants and existingConfig.name exclude each other: write the tenants into your gateway file" -}}
{{- end -}}
{{- if and $v.config.adminApi (ne (dig "adminApi" "store" "directory" $v.config) "redis") -}}
{{- fail "config.adminApi needs store: redis here: what is mounted cannot be changed by the API" -}}
{{- end -}}
{{- if and (eq (dig "adminApi" "store" "directory" $v.config) "redis") (not $v.config.shared) -}}
{{- fail "config.adminApi.store is redis: write config.shared.redis" -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled (or $v.ingress.enabled $v.httpRoute.enabled) (not (or $v.networkPolicy.ingress.namespaces $v.networkPolicy.ingress.from)) -}}
{{- fail "the NetworkPolicy lets no ingress controller in: write its namespace into networkPolicy.ingress.namespaces" -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled (ne $v.service.type "ClusterIP") (not $v.networkPolicy.ingress.from) -}}
{{- fail "the NetworkPolicy lets nobody outside of the cluster in: write networkPolicy.ingress.from, such as [{ipBlock: {cidr: 10.0.0.0/8}}], for a Service of this type" -}}
{{- end -}}
{{- if and $v.networkPolicy.enabled (ne $v.monitoring.kind "none") (not (or $v.networkPolicy.private.namespaces $v.networkPolicy.private.from)) -}}
{{- fail "the NetworkPolicy lets no Prometheus in: write its namespace into networkPolicy.private.namespaces" -}}
{{- end -}}
{{- if and (ne $v.monitoring.kind "none") $v.adminTLS.enabled (not $v.monitoring.tlsConfig) -}}
{{- fail (printf "monitoring with adminTLS.enabled: Prometheus asks for an address, which the certificate is not for: write monitoring.tlsConfig, with ca%s and serverName: %s-private" (ternary ", cert, keySecret" "" (not (empty $v.adminTLS.clientCA.name))) (include "ahp-gateway.fullname" .)) -}}
{{- end -}}
{{- if and $v.ingress.enabled (not $v.ingress.hosts) -}}
{{- fail "ingress.enabled without ingress.hosts" -}}
{{- end -}}
{{- if and $v.httpRoute.enabled (not $v.httpRoute.parentRefs) -}}
{{- fail "httpRoute.enabled without httpRoute.parentRefs: no Gateway would serve it" -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (not (or $v.autoscaling.cpu $v.autoscaling.inFlight $v.autoscaling.metrics)) -}}
{{- fail "autoscaling.enabled without a metric: write autoscaling.cpu, inFlight or metrics" -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (gt (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas is above maxReplicas" -}}
{{- end -}}
{{- if and $v.tests.enabled (not $v.tests.keySecret.name) -}}
{{- fail "tests.enabled without a key: write tests.keySecret.name, a Secret with a tenant's key" -}}
{{- end -}}
{{- if and $v.tests.enabled $v.tls.enabled $v.tls.clientCA.name (eq $v.tls.clientAuth "required") -}}
{{- fail "tests.enabled with tls.clientAuth: required: the test pods have no client certificate" -}}
{{- end -}}
{{- end -}}
