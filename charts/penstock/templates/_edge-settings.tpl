{{/* What is put together of an edge's values. All of them: (dict "root" $ "name" .. "fullname" .. "edge" .. "selector" ..). */}}

{{/* Seconds from the beginning of a pod's end to its last connection gone. */}}
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

{{/* `edges.<edge>` of penstock.yaml: its settings, with listeners as the ports say. JSON. */}}
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
{{- if kindIs "map" . -}}{{/* what else its settings say of TLS holds on: checkSettings */}}
{{- $_ := set . "tls" (merge (dict) $tls (.tls | default dict)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $listeners -}}{{- $_ := set $settings "listeners" $listeners -}}{{- end -}}
{{- toJson $settings -}}
{{- end }}

{{/* `tls` of a listener, as far as the Secret says it. JSON. */}}
{{- define "penstock.edge.tlsFiles" -}}
{{- $tls := dict "certificate" "/etc/penstock/tls/tls.crt" "key" "/etc/penstock/tls/tls.key" -}}
{{- if .edge.tls.clientCA -}}{{- $_ := set $tls "client_ca" "/etc/penstock/tls/ca.crt" -}}{{- end -}}
{{- toJson $tls -}}
{{- end }}

{{/* Puts a value at 'a.b.c' of a map, which is changed: (list map path value). */}}
{{- define "penstock.put" -}}
{{- $value := index . 2 -}}
{{- range splitList "." (index . 1) | reverse -}}{{- $value = dict . $value -}}{{- end -}}
{{- include "penstock.overlay" (list (index . 0) $value) -}}
{{- end }}

{{/* What is at 'a.b.c' of a map: (list map path). JSON, null if nothing is. */}}
{{- define "penstock.at" -}}
{{- $found := index . 0 -}}
{{- range splitList "." (index . 1) -}}
{{- $found = ternary (get (ternary $found dict (kindIs "map" $found)) .) nil (hasKey (ternary $found dict (kindIs "map" $found)) .) -}}
{{- end -}}
{{- toJson $found -}}
{{- end }}

{{/* penstock.yaml. JSON keeps numbers whole that YAML of templates would make floats of. */}}
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
