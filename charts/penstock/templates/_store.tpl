{{/* Access to the store: the chart's own, whose passwords the chart keeps, or an external one by URL. */}}

{{/* The name of the release's store in the cluster: labels have at most 63 characters, so longer names become a hash. */}}
{{- define "penstock.store" -}}
{{- $name := printf "%s.%s" .Release.Namespace (include "penstock.fullname" .) -}}
{{- ternary $name (sha256sum $name | trunc 63) (le (len $name) 63) -}}
{{- end }}

{{- define "penstock.redisSecret" -}}
{{- .Values.redis.auth.existingSecret | default (printf "%s-redis" (include "penstock.fullname" .)) }}
{{- end }}

{{- define "penstock.storeSecret" -}}
{{- .Values.externalRedis.existingSecret | default (printf "%s-store" (include "penstock.fullname" .)) }}
{{- end }}

{{/* A password of the Secret: from the values, else the existing one, else a new one; the same throughout a rendering. */}}
{{- define "penstock.password" -}}
{{- $root := index . 0 -}}{{- $key := index . 1 -}}
{{- $made := get $root.Values.redis.auth "made" | default dict -}}
{{- if not (hasKey $made $key) -}}
{{- $kept := lookup "v1" "Secret" $root.Release.Namespace (include "penstock.redisSecret" $root) | default dict -}}
{{- $was := index ($kept.data | default dict) $key | default "" | b64dec -}}
{{- $_ := set $made $key (index . 2 | default $was | default (randAlphaNum 32)) -}}
{{- $_ := set $root.Values.redis.auth "made" $made -}}
{{- end -}}
{{- get $made $key }}
{{- end }}

{{/* The environment for access to the store: (list $ "edge" or "admin"). */}}
{{- define "penstock.storeEnv" -}}
{{- $root := index . 0 -}}{{- $who := index . 1 -}}
{{- if $root.Values.redis.enabled }}
- name: STORE_PASSWORD
  valueFrom:
    secretKeyRef:
      name: {{ include "penstock.redisSecret" $root | toJson }}
      key: {{ $who }}-password
- name: REDIS_URL
  value: redis://{{ $who }}:$(STORE_PASSWORD)@{{ include "penstock.fullname" $root }}-redis:{{ $root.Values.redis.service.port }}/0
{{- else }}
- name: REDIS_URL
  valueFrom:
    secretKeyRef:
      name: {{ include "penstock.storeSecret" $root | toJson }}
      key: {{ ternary $root.Values.externalRedis.adminUrlKey $root.Values.externalRedis.urlKey (eq $who "admin") | toJson }}
{{- end }}
{{- end }}

{{/* A checksum that restarts pods when the chart's own Secret changes. */}}
{{- define "penstock.storeChecksum" -}}
{{- if .Values.redis.enabled -}}
{{- include "penstock.redisPasswords" . | sha256sum }}
{{- else -}}
{{- toJson .Values.externalRedis | sha256sum }}
{{- end }}
{{- end }}

{{- define "penstock.redisPasswords" -}}
{{- if not .Values.redis.auth.existingSecret }}
admin-password: {{ include "penstock.password" (list . "admin-password" .Values.redis.auth.adminPassword) | quote }}
edge-password: {{ include "penstock.password" (list . "edge-password" .Values.redis.auth.edgePassword) | quote }}
{{- end }}
{{- end }}

{{- define "penstock.storeMounts" -}}
{{- if and (not .Values.redis.enabled) .Values.externalRedis.tls.existingSecret }}
- name: store-tls
  mountPath: /etc/penstock/store-tls
  readOnly: true
{{- end }}
{{- end }}

{{- define "penstock.storeVolumes" -}}
{{- if and (not .Values.redis.enabled) .Values.externalRedis.tls.existingSecret }}
- name: store-tls
  secret:
    secretName: {{ .Values.externalRedis.tls.existingSecret | toJson }}
    defaultMode: 0440
{{- end }}
{{- end }}

{{/* The TCP ports of an external store: configured ones, and those of URLs in the values, as JSON. */}}
{{- define "penstock.storePorts" -}}
{{- $ports := list -}}
{{- range .Values.networkPolicy.storePorts }}{{ $ports = append $ports (int .) }}{{ end -}}
{{- range $url := list .Values.externalRedis.url .Values.externalRedis.adminUrl -}}
{{- $hosts := regexReplaceAll "^[a-z+]*://([^/?]*@)?([^/?]*).*$" $url "${2}" -}}
{{- range regexFindAll ":[0-9]+(,|$)" $hosts -1 }}{{ $ports = append $ports (. | trimPrefix ":" | trimSuffix "," | int) }}{{ end -}}
{{- end -}}
{{- $ports | uniq | toJson -}}
{{- end }}

{{/* The policy rule for name servers, which all pods need. */}}
{{- define "penstock.dnsEgress" -}}
- ports:
    {{- range .Values.networkPolicy.dnsPorts }}
    - {port: {{ . | toJson }}, protocol: UDP}
    - {port: {{ . | toJson }}, protocol: TCP}
    {{- end }}
  {{- with .Values.networkPolicy.dnsTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* The policy rule for the API server. */}}
{{- define "penstock.kubernetesEgress" -}}
- ports:
    {{- range .Values.networkPolicy.kubernetesPorts }}
    - port: {{ . | toJson }}
    {{- end }}
  {{- with .Values.networkPolicy.kubernetesTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* The rules for all pods, for a NetworkPolicy without own rules in these directions: (list $ "ingress" "egress"). */}}
{{- define "penstock.furtherRules" -}}
{{- $rules := (index . 0).Values.networkPolicy -}}
{{- range $way := rest . }}
{{- with get $rules $way }}
{{ $way }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{/* The policy rules for the store and name servers. */}}
{{- define "penstock.storeEgress" -}}
{{ include "penstock.dnsEgress" . }}
{{- if .Values.redis.enabled }}
- ports:
    # the pod's port: policies apply to it, not to the Service's port
    - port: 6379
  to:
    - podSelector:
        matchLabels:
          {{- include "penstock.selector" (list . "redis") | nindent 10 }}
{{- else }}
- ports:
    {{- range include "penstock.storePorts" . | fromJsonArray }}
    - port: {{ . | toJson }}
    {{- end }}
  {{- with .Values.networkPolicy.storeTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}
