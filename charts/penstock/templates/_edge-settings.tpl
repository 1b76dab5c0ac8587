{{/* What is put together of an edge's values. All of them: (dict "root" $ "name" .. "fullname" .. "edge" .. "selector" ..). */}}

{{/* Contradictions that the schema cannot see. */}}
{{- define "penstock.edge.check" -}}
{{- $where := printf "edges.%s" .name -}}
{{- if has .name (list "operator" "redis" "console" "analytics" "analytics-executor" "test" "uninstall" "store" "roles" "monitoring" "crds") -}}
{{- fail (printf "%s: another part of the chart has that name" $where) -}}
{{- end -}}
{{- if hasKey .edge.ports "health" -}}
{{- fail (printf "%s.ports.health: the port of that name is the chart's own: see healthPort" $where) -}}
{{- end -}}
{{- $needed := include "penstock.edge.graceNeeded" . | int -}}
{{- if and (ne .edge.terminationGracePeriodSeconds nil) (lt (int .edge.terminationGracePeriodSeconds) $needed) -}}
{{- fail (printf "%s.terminationGracePeriodSeconds: %v is less than the %d seconds that drain takes: leave it out, or make drain shorter" $where .edge.terminationGracePeriodSeconds $needed) -}}
{{- end -}}
{{- if and .edge.pdb.enabled (ne .edge.pdb.minAvailable nil) (ne .edge.pdb.maxUnavailable nil) -}}
{{- fail (printf "%s.pdb: minAvailable and maxUnavailable are both said: set one of them to null" $where) -}}
{{- end -}}
{{- with .edge.autoscaling -}}
{{- if and (ne .type "none") (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- fail (printf "%s.autoscaling: minReplicas %d is more than maxReplicas %d" $where (int .minReplicas) (int .maxReplicas)) -}}
{{- end -}}
{{- if and (eq .type "keda") (not .keda.serverAddress) (not .keda.triggers) -}}
{{- fail (printf "%s.autoscaling.keda: serverAddress is missing, the URL of Prometheus; or say triggers of your own" $where) -}}
{{- end -}}
{{- end -}}
{{- if and .edge.tls.clientCA (not .edge.tls.secretName) -}}
{{- fail (printf "%s.tls: clientCA needs secretName, a Secret with ca.crt" $where) -}}
{{- end -}}
{{- if and .edge.helmTest (not (hasKey .edge.ports .edge.helmTest)) -}}
{{- fail (printf "%s.helmTest: there is no port %q" $where .edge.helmTest) -}}
{{- end -}}
{{- if not (.root.Values.redis.enabled) -}}
{{- if not (or .root.Values.externalRedis.url .root.Values.externalRedis.existingSecret) -}}
{{- fail "no store: set redis.enabled, externalRedis.url or externalRedis.existingSecret" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Seconds from the beginning of a pod's end to its last connection gone. */}}
{{- define "penstock.edge.graceNeeded" -}}
{{- with .edge.drain -}}
{{- ceil (addf .preStopSleepSeconds .graceSeconds .spreadSeconds .timeoutSeconds) -}}
{{- end -}}
{{- end }}

{{- define "penstock.edge.grace" -}}
{{- if ne .edge.terminationGracePeriodSeconds nil -}}
{{- .edge.terminationGracePeriodSeconds -}}
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
{{- end -}}
{{- with .edge.tls -}}
{{- if .secretName -}}
{{- $tls := dict "certificate" "/etc/penstock/tls/tls.crt" "key" "/etc/penstock/tls/tls.key" -}}
{{- if .clientCA -}}{{- $_ := set $tls "client_ca" "/etc/penstock/tls/ca.crt" -}}{{- end -}}
{{- range $listener := .listeners | default (keys $listeners) -}}
{{- if kindIs "map" (get $listeners $listener) -}}
{{- $_ := set (get $listeners $listener) "tls" $tls -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $listeners -}}{{- $_ := set $settings "listeners" $listeners -}}{{- end -}}
{{- toJson $settings -}}
{{- end }}

{{/* penstock.yaml. JSON keeps numbers whole that YAML of templates would make floats of. */}}
{{- define "penstock.edge.file" -}}
log: {{ toJson .root.Values.log }}
health: {host: {{ .edge.bindAddress | quote }}, port: {{ .edge.healthPort }}}
drain: {grace_s: {{ .edge.drain.graceSeconds }}, spread_s: {{ .edge.drain.spreadSeconds }}, timeout_s: {{ .edge.drain.timeoutSeconds }}}
{{- with .edge.limits }}
limits: {{ toJson . }}
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
