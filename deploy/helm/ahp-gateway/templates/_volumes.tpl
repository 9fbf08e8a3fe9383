{{/* A bundle of roots, from a ConfigMap or Secret, as ca.crt. */}}
{{- define "ahp-gateway.caVolume" -}}
{{- if eq .kind "Secret" -}}
secret: {secretName: {{ .name | quote }}, defaultMode: 0440, items: [{key: {{ .key | quote }}, path: ca.crt}]}
{{- else -}}
configMap: {name: {{ .name | quote }}, items: [{key: {{ .key | quote }}, path: ca.crt}]}
{{- end -}}
{{- end -}}
