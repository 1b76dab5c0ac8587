{{/* Where edges, the console and the operator send traces to. */}}

{{/* Of penstock.yaml; empty: nothing is traced. */}}
{{- define "penstock.tracing.file" -}}
{{- with .Values.tracing }}
{{- if .endpoint }}
tracing: {endpoint: {{ .endpoint | toJson }}, ratio: {{ .ratio | float64 | toJson }}, most_per_s: {{ .mostPerSecond | toJson }}, most_followed_per_s: {{ .mostFollowedPerSecond | toJson }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "penstock.tracing.env" -}}
{{- with .Values.tracing }}
{{- if and .endpoint .headersSecret }}
- name: PENSTOCK_TRACING__HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ .headersSecret | toJson }}
      key: {{ .headersKey | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/* Ports of the collector: those that are said, else that of its URL. JSON. */}}
{{- define "penstock.tracing.ports" -}}
{{- $url := urlParse .Values.tracing.endpoint -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- .Values.networkPolicy.tracingPorts | default (list (int $port)) | toJson -}}
{{- end }}

{{- define "penstock.tracing.egress" -}}
{{- if .Values.tracing.endpoint }}
- ports:
    {{- range include "penstock.tracing.ports" . | fromJsonArray }}
    - port: {{ . | toJson }}
    {{- end }}
  {{- with .Values.networkPolicy.tracingTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* What would be ignored is refused. */}}
{{- define "penstock.tracing.check" -}}
{{- if and .Values.tracing.headersSecret (not .Values.tracing.endpoint) -}}
{{- fail "tracing.headersSecret: nothing is traced: say tracing.endpoint, or leave it out" -}}
{{- end -}}
{{- range list "tracingTo" "tracingPorts" -}}
{{- if and (get $.Values.networkPolicy .) (not $.Values.tracing.endpoint) -}}
{{- fail (printf "networkPolicy.%s: nothing is traced: say tracing.endpoint, or leave it out" .) -}}
{{- end -}}
{{- end -}}
{{- end }}
