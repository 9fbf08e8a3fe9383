{{/* Peers of a NetworkPolicy, from namespaces by name and others as they are. */}}
{{- define "ahp-gateway.peers" -}}
{{- range .namespaces }}
- namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: {{ . | quote }}}}
{{- end }}
{{- with .from }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The paths that harnesses use: path and type of an Ingress, one a line. */}}
{{- define "ahp-gateway.paths" -}}
- {path: /hooks, pathType: Exact}
- {path: /t, pathType: Prefix}
{{- if .Values.config.auth }}
- {path: /.well-known/oauth-protected-resource, pathType: Prefix}
{{- end }}
{{- end -}}
