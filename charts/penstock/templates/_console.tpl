{{/* Parts of the console: access, settings, checks. */}}

{{- define "penstock.console.name" -}}
{{ include "penstock.fullname" . }}-console
{{- end }}

{{- define "penstock.console.secret" -}}
{{ .Values.console.auth.existingSecret | default (include "penstock.console.name" .) }}
{{- end }}

{{- define "penstock.console.address" -}}
{{ .Values.console.bindAddress | default .Values.edgeDefaults.bindAddress }}
{{- end }}

{{/* Whether it binds a loopback address; empty if not. */}}
{{- define "penstock.console.isLoopback" -}}
{{- if regexMatch "^(127[.].*|::1)$" (include "penstock.console.address" .) }}true{{ end -}}
{{- end }}

{{/* The target port of its Service; empty if there is none. */}}
{{- define "penstock.console.target" -}}
{{- if ne .Values.console.service.targetPort nil }}{{ .Values.console.service.targetPort | toJson }}
{{- else if not (include "penstock.console.isLoopback" .) }}{{ .Values.console.port | toJson }}{{ end -}}
{{- end }}

{{/* The keys of tokens in the Secret, without duplicates, as JSON. */}}
{{- define "penstock.console.keys" -}}
{{- $keys := list -}}
{{- range .Values.console.auth.tokens }}{{ with .key }}{{ $keys = append $keys . }}{{ end }}{{ end -}}
{{- $keys | uniq | toJson -}}
{{- end }}

{{/* The token under a key of the chart's own Secret: the existing one or a new one. Call it once per rendering, since a second call would generate another. */}}
{{- define "penstock.console.tokens" -}}
{{- $kept := lookup "v1" "Secret" .Release.Namespace (include "penstock.console.secret" .) | default dict -}}
{{- range include "penstock.console.keys" . | fromJsonArray }}
{{ . | toJson }}: {{ index ($kept.data | default dict) . | default "" | b64dec | default (randAlphaNum 40) | quote }}
{{- end }}
{{- end }}

{{/* The section `console` of penstock.yaml, as JSON. */}}
{{- define "penstock.console.settings" -}}
{{- $own := .Values.console -}}
{{- $settings := deepCopy $own.settings -}}
{{- $tokens := list -}}
{{- range $own.auth.tokens -}}
{{- $token := pick . "name" "role" -}}
{{- if .key }}{{ $_ := set $token "file" (printf "/etc/penstock/tokens/%s" .key) }}{{ else }}{{ $_ := set $token "sha256" .sha256 }}{{ end -}}
{{- $tokens = append $tokens $token -}}
{{- end -}}
{{- include "penstock.overlay" (list $settings (dict "host" (include "penstock.console.address" .) "port" $own.port "tokens" $tokens)) -}}
{{- with $own.auth.proxy -}}
{{- if .networks -}}
{{- $_ := set $settings "proxy" (dict "networks" .networks "user_header" .userHeader "role_header" .roleHeader "roles" .roles) -}}
{{- end -}}
{{- end -}}
{{- if $own.tls.secretName -}}
{{- $_ := set $settings "tls" (include "penstock.edge.tlsFiles" (dict "edge" $own) | fromJson) -}}
{{- end -}}
{{- toJson $settings -}}
{{- end }}

{{/* The file penstock.yaml. */}}
{{- define "penstock.console.file" -}}
log: {{ toJson .Values.log }}
health: {host: {{ .Values.edgeDefaults.bindAddress | quote }}, port: {{ .Values.console.healthPort | toJson }}}
{{- include "penstock.tracing.file" . }}
{{- with .Values.monitoring.queues }}
{{- if .enabled }}
metrics: {queues: true, max_queues: {{ .max | toJson }}, queue_latencies: {{ .latencies | toJson }}}
{{- end }}
{{- end }}
console: {{ include "penstock.console.settings" . }}
{{- end }}

{{- define "penstock.console.env" }}
- {name: PENSTOCK_CONFIG, value: /etc/penstock/penstock.yaml}
{{- include "penstock.storeEnv" (list . "edge") }}
{{- include "penstock.tracing.env" . }}
{{- range $variable, $value := .Values.console.env }}
- {name: {{ $variable | toJson }}, value: {{ include "penstock.text" $value | quote }}}
{{- end }}
{{- with .Values.console.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The key of a token for `helm test`, preferably of the role `view`; empty if the console is not tested. */}}
{{- define "penstock.console.testKey" -}}
{{- $own := .Values.console -}}
{{- $isReached := and (not (include "penstock.console.isLoopback" .)) (eq $own.service.targetPort nil) -}}
{{- if and $own.enabled $own.replicas $isReached (not $own.tls.clientCA) -}}
{{- $found := "" -}}
{{- range $own.auth.tokens -}}
{{- if and .key (or (not $found) (eq .role "view")) }}{{ $found = .key }}{{ end -}}
{{- end -}}
{{- $found -}}
{{- end -}}
{{- end }}

{{/* The container of `helm test` that queries the console, with the console's own image, which can be pulled. */}}
{{- define "penstock.console.test" -}}
{{- $own := .Values.console -}}
{{- with include "penstock.console.testKey" . }}
- name: overview
  image: {{ include "penstock.image" (list $ $own.image) | toJson }}
  imagePullPolicy: {{ $own.image.pullPolicy | toJson }}
  command: [python, /etc/penstock/overview.py]
  {{- include "penstock.containerSecurity" $ | nindent 2 }}
  env:
    - {name: CONSOLE_URL, value: {{ printf "%s://%s:%d" (ternary "https" "http" (ne $own.tls.secretName "")) (include "penstock.console.name" $) (int $own.service.port) | toJson }}}
    - name: CONSOLE_TOKEN
      valueFrom:
        secretKeyRef: {name: {{ include "penstock.console.secret" $ | toJson }}, key: {{ . | toJson }}}
    - {name: START_S, value: {{ div (int $.Values.helmTest.timeoutSeconds) 2 | toString | quote }}}
  resources:
    {{- include "penstock.resources" (list "helmTest.resources" $.Values.helmTest.resources) | nindent 4 }}
  volumeMounts:
    - {name: script, mountPath: /etc/penstock/overview.py, subPath: overview.py, readOnly: true}
    - {name: tmp, mountPath: /tmp}
{{- end }}
{{- end }}

{{- define "penstock.console.accountName" -}}
{{- with .Values.console.serviceAccount -}}
{{ .name | default (ternary (include "penstock.console.name" $) "default" .create) }}
{{- end -}}
{{- end }}

{{/* Contradictions that the schema cannot detect. */}}
{{- define "penstock.console.check" -}}
{{- $own := .Values.console -}}
{{- include "penstock.console.checkAuth" . -}}
{{- include "penstock.edge.checkBudget" (dict "where" "console" "edge" (merge (dict "autoscaling" (dict "type" "none")) $own)) -}}
{{- range $setting, $value := dict "host" "bindAddress" "port" "port" "tls" "tls" "tokens" "auth.tokens" "proxy" "auth.proxy" "enabled" "enabled" -}}
{{- if hasKey $own.settings $setting -}}
{{- fail (printf "console.settings.%s: set console.%s instead" $setting $value) -}}
{{- end -}}
{{- end -}}
{{- if and $own.tls.clientCA (not $own.tls.secretName) -}}
{{- fail "console.tls: clientCA requires secretName, a Secret with ca.crt" -}}
{{- end -}}
{{- if eq (int $own.port) (int $own.healthPort) -}}
{{- fail (printf "console.healthPort: %d is also console.port: choose different ports" (int $own.port)) -}}
{{- end -}}
{{- if and (eq $own.service.type "ClusterIP") (eq (int $own.service.port) (int $own.healthPort)) -}}
{{- fail (printf "console.service.port: %d is also console.healthPort: choose different ports" (int $own.healthPort)) -}}
{{- end -}}
{{- if and $own.service.nodePort (eq $own.service.type "ClusterIP") -}}
{{- fail "console.service.nodePort: a Service of type ClusterIP has no node port: set console.service.type" -}}
{{- end -}}
{{- if and $own.ingress.enabled (not $own.ingress.hosts) -}}
{{- fail "console.ingress: hosts is required: set the host names for browsers" -}}
{{- end -}}
{{- if and (not (include "penstock.console.target" .)) (or $own.ingress.enabled (ne $own.service.type "ClusterIP")) -}}
{{- fail (printf "console.bindAddress: %s is only reachable from within the pod: set another address, or console.service.targetPort to the port of a proxy in extraContainers; or remove ingress and service.type" (include "penstock.console.address" .)) -}}
{{- end -}}
{{- end }}

{{/* A token generated by the console would be lost with its pod. */}}
{{- define "penstock.console.checkAuth" -}}
{{- $auth := .Values.console.auth -}}
{{- if not (or $auth.tokens $auth.proxy.networks) -}}
{{- fail "console.auth: no user could sign in without tokens and without a proxy: keep the default token, set your own tokens, or set proxy.networks" -}}
{{- end -}}
{{- range $auth.tokens -}}
{{- if eq (empty .key) (empty .sha256) -}}
{{- fail (printf "console.auth.tokens: %s needs either key, the token's key in the Secret, or sha256, its digest" .name) -}}
{{- end -}}
{{- end -}}
{{- if and $auth.existingSecret (eq (include "penstock.console.keys" .) "[]") -}}
{{- fail "console.auth.existingSecret: no token has a key in it: set keys in console.auth.tokens, or remove this value" -}}
{{- end -}}
{{- if and $auth.proxy.networks (not $auth.proxy.roles) -}}
{{- fail "console.auth.proxy.roles: users of the proxy have no role: map groups to roles, as in {staff: view, sre: admin}" -}}
{{- end -}}
{{- if and $auth.proxy.roles (not $auth.proxy.networks) -}}
{{- fail "console.auth.proxy.networks: it is required for headers to be trusted: set the proxy's networks, such as [10.0.7.0/24]" -}}
{{- end -}}
{{- end }}
