{{/* Tracing of edges, the console and the operator. */}}

{{/* The setting with the endpoint, as JSON; empty if tracing is off. */}}
{{- define "penstock.tracing.place" -}}
{{- with .Values.tracing -}}
{{- if .tracesEndpoint -}}
{{- dict "name" "traces_endpoint" "url" .tracesEndpoint | toJson -}}
{{- else if .endpoint -}}
{{- dict "name" "endpoint" "url" .endpoint | toJson -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The section of penstock.yaml; empty if tracing is off. */}}
{{- define "penstock.tracing.file" -}}
{{- $place := include "penstock.tracing.place" . | default "{}" | fromJson }}
{{- with .Values.tracing }}
{{- if $place }}
tracing: { {{- $place.name }}: {{ $place.url | toJson }}, ratio: {{ .ratio | float64 | toJson }}, most_per_s: {{ .mostPerSecond | toJson }}, most_followed_per_s: {{ .mostFollowedPerSecond | toJson }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "penstock.tracing.env" -}}
{{- $place := include "penstock.tracing.place" . | default "{}" | fromJson }}
{{- with .Values.tracing }}
{{- if and $place .headersSecret }}
- name: PENSTOCK_TRACING__HEADERS
  valueFrom:
    secretKeyRef:
      name: {{ .headersSecret | toJson }}
      key: {{ .headersKey | toJson }}
{{- end }}
{{- end }}
{{- end }}

{{/* The ports of the collector: configured ones, else that of its URL, as JSON. */}}
{{- define "penstock.tracing.ports" -}}
{{- $url := urlParse (include "penstock.tracing.place" . | default "{}" | fromJson).url -}}
{{- $port := regexFind ":[0-9]+$" $url.host | trimPrefix ":" | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- .Values.networkPolicy.tracingPorts | default (list (int $port)) | toJson -}}
{{- end }}

{{- define "penstock.tracing.egress" -}}
{{- if include "penstock.tracing.place" . }}
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

{{/* Refuses values that would be ignored. */}}
{{- define "penstock.tracing.check" -}}
{{- if and .Values.tracing.endpoint .Values.tracing.tracesEndpoint -}}
{{- fail "tracing.tracesEndpoint: tracing.endpoint and this exclude each other: remove one of them" -}}
{{- end -}}
{{- $place := include "penstock.tracing.place" . -}}
{{- if and .Values.tracing.headersSecret (not $place) -}}
{{- fail "tracing.headersSecret: tracing is off: set tracing.endpoint, or remove this value" -}}
{{- end -}}
{{- range list "tracingTo" "tracingPorts" -}}
{{- if and (get $.Values.networkPolicy .) (not $place) -}}
{{- fail (printf "networkPolicy.%s: tracing is off: set tracing.endpoint, or remove this value" .) -}}
{{- end -}}
{{- end -}}
{{- end }}
