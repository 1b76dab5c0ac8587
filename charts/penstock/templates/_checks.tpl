{{/* Contradictions that the schema cannot see: each is refused in words that say what to do. Of edges: _edge-checks.tpl. */}}

{{/* Of the whole release: $. */}}
{{- define "penstock.check" -}}
{{- $outside := .Values.externalRedis -}}
{{- if .Values.redis.enabled -}}
{{- include "penstock.checkRedis" . -}}
{{- range list "url" "adminUrl" "existingSecret" -}}
{{- if get $outside . -}}
{{- fail (printf "externalRedis.%s: the chart's own Redis would be used: set redis.enabled=false, or leave it out" .) -}}
{{- end -}}
{{- end -}}
{{- else if not (or $outside.url $outside.existingSecret) -}}
{{- fail "no store: set redis.enabled, externalRedis.url or externalRedis.existingSecret" -}}
{{- end -}}
{{- with .Values.operator -}}
{{- if and .enabled (not .serviceAccount.create) (not .serviceAccount.name) -}}
{{- fail "operator.serviceAccount: without create it needs name: `default` would have its rights in every pod that says nothing" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Settings of the chart's own Redis, in any case of letters. */}}
{{- define "penstock.checkRedis" -}}
{{- range $said, $_ := .Values.redis.config -}}
{{- $setting := lower $said -}}
{{- if has $setting (list "aclfile" "user" "requirepass" "port" "dir") -}}
{{- fail (printf "redis.config.%s: the chart says that itself; passwords stand in redis.auth" $said) -}}
{{- end -}}
{{- if eq $setting "maxmemory" }}{{ fail (printf "redis.config.%s: say redis.maxmemory" $said) }}{{ end -}}
{{- if has $setting (list "appendonly" "appendfsync" "no-appendfsync-on-rewrite" "maxmemory-policy" "replicaof" "slaveof") -}}
{{- fail (printf "redis.config.%s: otherwise than the chart has it, the store would lose what it acknowledged: leave it out" $said) -}}
{{- end -}}
{{- end -}}
{{- with .Values.redis.resources.limits -}}
{{- if .memory -}}
{{- $limit := include "penstock.bytes" (include "penstock.text" .memory) | float64 -}}
{{- if ge (include "penstock.bytes" $.Values.redis.maxmemory | float64) $limit -}}
{{- fail (printf "redis.maxmemory: %s is not less than redis.resources.limits.memory, %s: the server would be killed before it is full" $.Values.redis.maxmemory (include "penstock.text" .memory)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Bytes of a size as Redis or Kubernetes writes it. */}}
{{- define "penstock.bytes" -}}
{{- $kb := 1024.0 -}}{{- $mb := mulf $kb $kb -}}{{- $gb := mulf $mb $kb -}}{{- $tb := mulf $gb $kb -}}
{{- $units := dict "" 1.0 "m" 1e6 "M" 1e6 "k" 1e3 "K" 1e3 "g" 1e9 "G" 1e9 "T" 1e12 "kb" $kb "Ki" $kb "mb" $mb "Mi" $mb "gb" $gb "Gi" $gb "Ti" $tb -}}
{{- $unit := regexFind "[A-Za-z]*$" . -}}
{{- mulf (trimSuffix $unit . | float64) (get $units $unit | default 1e18) | toJson -}}
{{- end }}
