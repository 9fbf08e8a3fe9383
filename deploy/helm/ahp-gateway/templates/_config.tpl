{{/* The gateway file, with what the chart sets. */}}
{{- define "ahp-gateway.config" -}}
{{- $c := deepCopy .Values.config -}}
{{- $_ := set $c "listen" ":8787" -}}
{{- $_ := set $c "admin" ":8788" -}}
{{- $_ := set $c "tenantsDir" "/etc/ahp-gateway/tenants" -}}
{{- with .Values.tls -}}
{{- if .enabled -}}
{{- $tls := dict "certFile" "/etc/ahp-gateway/tls/tls.crt" "keyFile" "/etc/ahp-gateway/tls/tls.key" -}}
{{- if .clientCA.name -}}
{{- $tls = merge $tls (dict "clientCAFile" "/etc/ahp-gateway/client-ca/ca.crt" "clientAuth" .clientAuth) -}}
{{- end -}}
{{- $_ := set $c "tls" $tls -}}
{{- end -}}
{{- end -}}
{{- with .Values.adminTLS -}}
{{- if .enabled -}}
{{- $tls := dict "certFile" "/etc/ahp-gateway/admin-tls/tls.crt" "keyFile" "/etc/ahp-gateway/admin-tls/tls.key" -}}
{{- if .clientCA.name -}}
{{- $_ := set $tls "clientCAFile" "/etc/ahp-gateway/admin-client-ca/ca.crt" -}}
{{- end -}}
{{- with .names }}{{ $_ := set $tls "names" . }}{{ end -}}
{{- $_ := set $c "adminTLS" $tls -}}
{{- end -}}
{{- end -}}
{{- toYaml $c -}}
{{- end -}}

{{/* One tenant's file: (list id entry). */}}
{{- define "ahp-gateway.tenant" -}}
{{- $id := index . 0 -}}
{{- $entry := index . 1 -}}
{{- $t := deepCopy $entry.config -}}
{{- $_ := set $t "id" $id -}}
{{- if $entry.secretName -}}
{{- if not (dig "secrets" "dir" "" $t) -}}
{{- $_ := set $t "secrets" (merge (dict "dir" (printf "/etc/ahp-gateway/tenant-secrets/%s" $id)) (default (dict) $t.secrets)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $t -}}
{{- end -}}

{{/* The files of the tenants that are written in the values. */}}
{{- define "ahp-gateway.tenants" -}}
{{- range $id, $entry := .Values.tenants }}
{{- if $entry.config }}
{{ $id }}.yaml: |
  {{- include "ahp-gateway.tenant" (list $id $entry) | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/*
What of the configuration takes a restart (needRestart of package gateway), or
with configChange: roll all of it. What is not in it, the gateway reloads.
*/}}
{{- define "ahp-gateway.restart" -}}
{{- if eq .Values.configChange "roll" -}}
{{- include "ahp-gateway.config" . }}{{ include "ahp-gateway.tenants" . -}}
{{- else -}}
{{- $c := .Values.config -}}
{{- $limits := pick (default (dict) $c.limits) "body" "bodyBytes" "headers" "readTimeout" "writeTimeout" "idleTimeout" "connections" "connectionsPerIP" "observeBytes" "auditQueue" -}}
{{- dict "log" $c.log "audit" (omit (default (dict) $c.audit) "inputs") "metrics" $c.metrics "shared" $c.shared "limits" $limits | toYaml -}}
{{- end -}}
{{- end -}}

{{/* A Go duration in whole seconds, rounded up. */}}
{{- define "ahp-gateway.seconds" -}}
{{- $ms := 0.0 -}}
{{- range regexFindAll "[0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h)" . -1 -}}
{{- $unit := regexFind "[a-zµ]+$" . -}}
{{- $n := trimSuffix $unit . | float64 -}}
{{- $ms = addf $ms (mulf $n (get (dict "ns" 0.000001 "us" 0.001 "µs" 0.001 "ms" 1.0 "s" 1000.0 "m" 60000.0 "h" 3600000.0) $unit)) -}}
{{- end -}}
{{- divf $ms 1000.0 | ceil | int -}}
{{- end -}}

{{/*
Seconds from preStop to the end of the process: the drain, and what comes after
it (audit log two, telemetry and a reserve).
*/}}
{{- define "ahp-gateway.gracePeriod" -}}
{{- $drain := dig "limits" "drainTimeout" "25s" .Values.config -}}
{{- $least := add (int .Values.shutdown.preStopSeconds) (include "ahp-gateway.seconds" $drain | int) 10 -}}
{{- $grace := .Values.shutdown.gracePeriodSeconds -}}
{{- if kindIs "invalid" $grace -}}
{{- $least -}}
{{- else if lt (int $grace) (int $least) -}}
{{- fail (printf "shutdown.gracePeriodSeconds is %d, less than preStopSeconds, config.limits.drainTimeout and 10 s: requests under way would be cut off; write at least %d, or leave it out" (int $grace) (int $least)) -}}
{{- else -}}
{{- int $grace -}}
{{- end -}}
{{- end -}}

{{/* Nine tenths of a memory limit in bytes, or nothing where it cannot be read. */}}
{{- define "ahp-gateway.memoryLimit" -}}
{{- $q := kindIs "float64" . | ternary (. | float64 | int64 | toString) (toString .) -}}
{{- if regexMatch "^[0-9]+(\\.[0-9]+)?([KMGT]i|[kMGT])?$" $q -}}
{{- $unit := regexFind "[a-zA-Z]+$" $q -}}
{{- $n := trimSuffix $unit $q | float64 -}}
{{- $factor := get (dict "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000) $unit | default 1 -}}
{{- mulf $n $factor 0.9 | floor | int64 -}}
{{- end -}}
{{- end -}}

{{/* The port of a URL: (list url default). */}}
{{- define "ahp-gateway.port" -}}
{{- $host := (urlParse (index . 0)).host -}}
{{- regexFind ":[0-9]+$" $host | trimPrefix ":" | default (index . 1) -}}
{{- end -}}

{{- define "ahp-gateway.tlsSecret" -}}
{{- default (printf "%s-tls" (include "ahp-gateway.fullname" .)) .Values.tls.secretName -}}
{{- end -}}

{{- define "ahp-gateway.adminTLSSecret" -}}
{{- default (printf "%s-private-tls" (include "ahp-gateway.fullname" .)) .Values.adminTLS.secretName -}}
{{- end -}}

{{- define "ahp-gateway.servicePort" -}}
{{- .Values.service.port | default (ternary 443 80 .Values.tls.enabled) | int -}}
{{- end -}}
