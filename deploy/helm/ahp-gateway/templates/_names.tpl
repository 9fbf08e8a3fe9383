{{- define "ahp-gateway.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Cut so that what the chart appends still fits into 63 characters. */}}
{{- define "ahp-gateway.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "ahp-gateway.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "ahp-gateway.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "ahp-gateway.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "ahp-gateway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "ahp-gateway.image" -}}
{{- $i := .Values.image -}}
{{- $name := $i.repository -}}
{{- if $i.registry }}{{ $name = printf "%s/%s" $i.registry $i.repository }}{{ end -}}
{{- $name = printf "%s:%s" $name (default .Chart.AppVersion $i.tag) -}}
{{- if $i.digest }}{{ $name = printf "%s@%s" $name $i.digest }}{{ end -}}
{{- $name -}}
{{- end -}}

{{- define "ahp-gateway.selectorLabels" -}}
app.kubernetes.io/name: {{ include "ahp-gateway.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: gateway
{{- end -}}

{{/* Labels of an object that is no pod. */}}
{{- define "ahp-gateway.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "ahp-gateway.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: ahp-gateway
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The metadata of an object: (list $ "-suffix" labels annotations), the last two may be empty. */}}
{{- define "ahp-gateway.metadata" -}}
{{- $ := index . 0 -}}
name: {{ printf "%s%s" (include "ahp-gateway.fullname" $) (index . 1) | quote }}
namespace: {{ $.Release.Namespace | quote }}
labels:
  {{- include "ahp-gateway.labels" $ | nindent 2 }}
  {{- with index . 2 }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (default (dict) (index . 3)) $.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The name of a volume, for a name that may be too long for one: (list "prefix" name). */}}
{{- define "ahp-gateway.volume" -}}
{{- $name := printf "%s-%s" (index . 0) (index . 1) -}}
{{- if gt (len $name) 63 -}}
{{- $name = printf "%s-%s" ($name | trunc 52 | trimSuffix "-") (sha256sum $name | trunc 10) -}}
{{- end -}}
{{- $name -}}
{{- end -}}
