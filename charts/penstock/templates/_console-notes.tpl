{{/* NOTES of the console: its address and tokens. */}}
{{- define "penstock.console.notes" -}}
{{- $own := .Values.console -}}
{{- $name := include "penstock.console.name" . -}}
{{- $scheme := ternary "https" "http" (ne $own.tls.secretName "") }}

The console, a page and an HTTP API:
{{ range $own.ingress.enabled | ternary $own.ingress.hosts list }}
  {{ $own.ingress.tls | empty | ternary "http" "https" }}://{{ . }}{{ $own.ingress.path }}
{{- end }}
{{- if include "penstock.console.target" . }}
  kubectl port-forward --namespace {{ .Release.Namespace }} service/{{ $name }} 9180:{{ int $own.service.port }}
{{- else }}
  kubectl port-forward --namespace {{ .Release.Namespace }} deployment/{{ $name }} 9180:{{ int $own.port }}
{{- end }}
  {{ $scheme }}://localhost:9180/
{{- range $own.auth.tokens }}
{{- if .key }}

The token of {{ .name }} ({{ .role }}):

  kubectl get secret {{ include "penstock.console.secret" $ }} --namespace {{ $.Release.Namespace }} --output go-template='{{ "{{" }}index .data {{ .key | quote }} | base64decode{{ "}}" }}'
{{- end }}
{{- end }}
{{- end }}
