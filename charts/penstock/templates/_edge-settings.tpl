{{/* Settings generated from an edge's values. All take (dict "root" $ "name" .. "fullname" .. "edge" .. "selector" ..). */}}

{{/* Seconds from the start of a pod's termination until its last connection is closed. */}}
{{- define "penstock.edge.graceNeeded" -}}
{{- with .edge.drain -}}
{{- ceil (addf .preStopSleepSeconds .graceSeconds .spreadSeconds .timeoutSeconds) | toJson -}}
{{- end -}}
{{- end }}

{{- define "penstock.edge.grace" -}}
{{- if ne .edge.terminationGracePeriodSeconds nil -}}
{{- .edge.terminationGracePeriodSeconds | toJson -}}
{{- else -}}
{{- add (include "penstock.edge.graceNeeded" . | int) 10 -}}
{{- end -}}
{{- end }}

{{/* The section `edges.<edge>` of penstock.yaml, with listeners from `ports`, as JSON. */}}
{{- define "penstock.edge.settings" -}}
{{- $settings := deepCopy .edge.settings -}}
{{- $listeners := $settings.listeners | default dict -}}
{{- range $port := .edge.ports -}}
{{- with $port.listener -}}
{{- if ne (toString $port.enabled) "false" -}}
{{- $listener := get $listeners . | default dict -}}
{{- include "penstock.overlay" (list $listener (dict "host" $.edge.bindAddress "port" $port.port)) -}}
{{- $_ := set $listeners . $listener -}}
{{- else -}}
{{- $_ := set $listeners . false -}}
{{- end -}}
{{- end -}}
{{- with $port.setting }}{{ include "penstock.put" (list $settings . $port.port) }}{{ end -}}
{{- with $port.host -}}
{{- if eq (include "penstock.at" (list $settings .)) "null" }}{{ include "penstock.put" (list $settings . $.edge.bindAddress) }}{{ end -}}
{{- end -}}
{{- if and $port.switch (eq (toString $port.enabled) "false") }}{{ include "penstock.put" (list $settings $port.switch false) }}{{ end -}}
{{- end -}}
{{- with .edge.tls -}}
{{- if .secretName -}}
{{- $tls := include "penstock.edge.tlsFiles" $ | fromJson -}}
{{- range $listener := .listeners | default (keys $listeners) -}}
{{- with get $listeners $listener -}}
{{- if kindIs "map" . -}}{{/* its other TLS settings are kept, see checkSettings */}}
{{- $_ := set . "tls" (merge (dict) $tls (.tls | default dict)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $listeners -}}{{- $_ := set $settings "listeners" $listeners -}}{{- end -}}
{{- toJson $settings -}}
{{- end }}

{{/* The part of a listener's `tls` that comes from the Secret, as JSON. */}}
{{- define "penstock.edge.tlsFiles" -}}
{{- $tls := dict "certificate" "/etc/penstock/tls/tls.crt" "key" "/etc/penstock/tls/tls.key" -}}
{{- if .edge.tls.clientCA -}}{{- $_ := set $tls "client_ca" "/etc/penstock/tls/ca.crt" -}}{{- end -}}
{{- toJson $tls -}}
{{- end }}

{{/* Sets a value at 'a.b.c' of a map in place: (list map path value). */}}
{{- define "penstock.put" -}}
{{- $value := index . 2 -}}
{{- range splitList "." (index . 1) | reverse -}}{{- $value = dict . $value -}}{{- end -}}
{{- include "penstock.overlay" (list (index . 0) $value) -}}
{{- end }}

{{/* The value at 'a.b.c' of a map as JSON, or null: (list map path). */}}
{{- define "penstock.at" -}}
{{- $found := index . 0 -}}
{{- range splitList "." (index . 1) -}}
{{- $found = ternary (get (ternary $found dict (kindIs "map" $found)) .) nil (hasKey (ternary $found dict (kindIs "map" $found)) .) -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* The file penstock.yaml. JSON preserves whole numbers, which YAML in templates would turn into floats. */}}
{{- define "penstock.edge.file" -}}
log: {{ toJson .root.Values.log }}
health: {host: {{ .edge.bindAddress | quote }}, port: {{ .edge.healthPort | toJson }}}
drain: {grace_s: {{ .edge.drain.graceSeconds | float64 | toJson }}, spread_s: {{ .edge.drain.spreadSeconds | float64 | toJson }}, timeout_s: {{ .edge.drain.timeoutSeconds | float64 | toJson }}}
{{- with .edge.limits }}
limits: {{ toJson . }}
{{- end }}
{{- include "penstock.tracing.file" .root }}
{{- with .root.Values.monitoring.queues }}
{{- if .enabled }}
metrics: {queues: true, max_queues: {{ .max | toJson }}, queue_latencies: {{ .latencies | toJson }}}
{{- end }}
{{- end }}
edges:
  {{ .name }}: {{ include "penstock.edge.settings" . }}
{{- end }}

{{- define "penstock.edge.config" -}}
apiVersion: v1
kind: ConfigMap
{{ include "penstock.metadata" (dict "root" .root "name" .fullname "component" .name) }}
data:
  penstock.yaml: |
    {{- include "penstock.edge.file" . | nindent 4 }}
{{- end }}
