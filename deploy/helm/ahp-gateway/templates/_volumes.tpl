{{/* A bundle of roots, from a ConfigMap or Secret, as ca.crt. */}}
{{- define "ahp-gateway.caVolume" -}}
{{- if eq .kind "Secret" -}}
secret: {secretName: {{ .name }}, defaultMode: 0440, items: [{key: {{ .key }}, path: ca.crt}]}
{{- else -}}
configMap: {name: {{ .name }}, items: [{key: {{ .key }}, path: ca.crt}]}
{{- end -}}
{{- end -}}
