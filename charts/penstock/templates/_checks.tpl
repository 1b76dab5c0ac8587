{{/* Contradictions that the schema cannot detect, each refused with advice. For edges see _edge-checks.tpl. */}}

{{/* Checks of the whole release: $. */}}
{{- define "penstock.check" -}}
{{- include "penstock.checkNames" . -}}
{{- $outside := .Values.externalRedis -}}
{{- if .Values.redis.enabled -}}
{{- include "penstock.checkRedis" . -}}
{{- range list "url" "adminUrl" "existingSecret" -}}
{{- if get $outside . -}}
{{- fail (printf "externalRedis.%s: the chart's own store is enabled: set redis.enabled=false, or remove this value" .) -}}
{{- end -}}
{{- end -}}
{{- if $outside.tls.existingSecret -}}
{{- fail "externalRedis.tls.existingSecret: the chart's own store is enabled and has no TLS: set redis.enabled=false, or remove this value" -}}
{{- end -}}
{{- else if and $outside.url $outside.existingSecret -}}
{{- fail "externalRedis.url: externalRedis.existingSecret already has the URL: remove one of the two" -}}
{{- else if not (or $outside.url $outside.existingSecret) -}}
{{- fail "no store: set redis.enabled, externalRedis.url or externalRedis.existingSecret" -}}
{{- end -}}
{{- include "penstock.checkRules" . -}}
{{- include "penstock.tracing.check" . -}}
{{- with .Values.operator -}}
{{- if and .watch.allNamespaces .watch.namespaces -}}
{{- fail "operator.watch: allNamespaces and namespaces exclude each other: remove one of the two" -}}
{{- end -}}
{{- if and .discover.namespaces .watch.allNamespaces -}}
{{- fail "operator.discover.namespaces: operator.watch.allNamespaces already covers every namespace: remove one of the two" -}}
{{- end -}}
{{- if and .enabled (not .serviceAccount.create) (not .serviceAccount.name) -}}
{{- fail "operator.serviceAccount: name is required if create is false: `default` would give its rights to other pods" -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* An unknown name would disable no alert. */}}
{{- define "penstock.checkRules" -}}
{{- $known := list -}}
{{- range $path, $_ := .Files.Glob "files/rules/*.yaml" -}}
{{- range ($.Files.Get $path | fromYaml).groups -}}
{{- range .rules }}{{ with .alert }}{{ $known = append $known . }}{{ end }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range .Values.monitoring.prometheusRule.disabled -}}
{{- if not (has . $known) -}}
{{- fail (printf "monitoring.prometheusRule.disabled: there is no alert %q; alerts are: %s" . ($known | uniq | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.monitoring.prometheusRule.deadLettersExceptQueues (not .Values.monitoring.queues.enabled) -}}
{{- fail "monitoring.prometheusRule.deadLettersExceptQueues: metrics have no queue names: set monitoring.queues.enabled" -}}
{{- end -}}
{{- end }}

{{/* Names, labels and variables: the API server would refuse some objects after others were created. */}}
{{- define "penstock.checkNames" -}}
{{- $name := include "penstock.fullname" . -}}
{{- $first := ternary "[a-z0-9]" "[a-z]" (semverCompare ">=1.36-0" .Capabilities.KubeVersion.Version) -}}{{/* there, names of Services may begin with a digit */}}
{{- if not (regexMatch (printf "^%s([a-z0-9-]*[a-z0-9])?$" $first) $name) -}}
{{- fail (printf "the name %s is not valid for a Service: set fullnameOverride to lower-case letters, digits and dashes, beginning with a letter" $name) -}}
{{- end -}}
{{- if not (regexMatch "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$" (include "penstock.name" .)) -}}
{{- fail (printf "nameOverride: %s is not a valid label value: use lower-case letters, digits and dashes" .Values.nameOverride) -}}
{{- end -}}
{{- include "penstock.checkLabels" (list "commonLabels" .Values.commonLabels) -}}
{{- range $part := list "operator" "redis" "console" "analytics" "helmTest" -}}
{{- include "penstock.checkLabels" (list (printf "%s.podLabels" $part) (get $.Values $part | default dict).podLabels) -}}
{{- end -}}
{{- include "penstock.checkLabels" (list "operator.uninstallHook.podLabels" .Values.operator.uninstallHook.podLabels) -}}
{{- range $part := list "operator" "console" "analytics" -}}
{{- $env := printf "penstock.%s.%s" $part (ternary "podEnv" "env" (eq $part "operator")) -}}
{{- if (get $.Values $part).enabled }}{{ include "penstock.checkEnv" (list $part (include $env $)) }}{{ end -}}
{{- end -}}
{{- if and .Values.redis.enabled .Release.IsUpgrade }}{{ include "penstock.checkStore" . }}{{ end -}}
{{- end }}

{{/* Labels reserved for the chart's selectors: (list path labels). */}}
{{- define "penstock.checkLabels" -}}
{{- range $label, $_ := index . 1 | default dict -}}
{{- if has $label (list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "app.kubernetes.io/part-of" "app.kubernetes.io/version" "app.kubernetes.io/managed-by" "helm.sh/chart" "penstock.dev/edge") -}}
{{- fail (printf "%s: the label %s is reserved for the chart: remove it" (index $ 0) $label) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Duplicate variables: (list path yaml). */}}
{{- define "penstock.checkEnv" -}}
{{- $seen := list -}}
{{- range index . 1 | fromYamlArray -}}
{{- if has .name $seen -}}
{{- fail (printf "%s: the variable %s is set twice, by the chart or by another value: remove it" (index $ 0) .name) -}}
{{- end -}}
{{- $seen = append $seen .name -}}
{{- end -}}
{{- end }}

{{/* Another name creates another StatefulSet with a new volume, thus an empty store, silently. */}}
{{- define "penstock.checkStore" -}}
{{- $name := printf "%s-redis" (include "penstock.fullname" .) -}}
{{- range dig "items" list (lookup "apps/v1" "StatefulSet" .Release.Namespace "" | default dict) -}}
{{- $labels := .metadata.labels | default dict -}}
{{- $isStore := and (eq (get $labels "app.kubernetes.io/component") "redis") (eq (get $labels "app.kubernetes.io/part-of") "penstock") -}}
{{- if and $isStore (include "penstock.isOwn" (list $ $labels)) (ne .metadata.name $name) -}}
{{- fail (printf "the release's store is %s, and the new name %s would create an empty store: keep fullnameOverride and nameOverride, or set fullnameOverride=%s" .metadata.name $name (trimSuffix "-redis" .metadata.name)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Settings of the chart's own store; names are case-insensitive. */}}
{{- define "penstock.checkRedis" -}}
{{- range list "adminPassword" "edgePassword" -}}
{{- if and $.Values.redis.auth.existingSecret (get $.Values.redis.auth .) -}}
{{- fail (printf "redis.auth.%s: redis.auth.existingSecret already has it: remove one of the two" .) -}}
{{- end -}}
{{- end -}}
{{- $seen := dict -}}
{{- range $said, $_ := .Values.redis.config -}}
{{- $setting := lower $said -}}
{{- if hasKey $seen $setting -}}
{{- fail (printf "redis.config.%s: it is also set as %s: remove one of the two" $said (get $seen $setting)) -}}
{{- end -}}
{{- $_ := set $seen $setting $said -}}
{{- if has $setting (list "aclfile" "user" "requirepass" "port" "dir") -}}
{{- fail (printf "redis.config.%s: the chart sets it; passwords belong in redis.auth" $said) -}}
{{- end -}}
{{- if eq $setting "maxmemory" }}{{ fail (printf "redis.config.%s: set redis.maxmemory instead" $said) }}{{ end -}}
{{- if has $setting (list "appendonly" "appendfsync" "no-appendfsync-on-rewrite" "maxmemory-policy" "replicaof" "slaveof") -}}
{{- fail (printf "redis.config.%s: the store would lose acknowledged messages with another value than the chart's: remove it" $said) -}}
{{- end -}}
{{- end -}}
{{- with .Values.redis.resources.limits -}}
{{- if .memory -}}
{{- $limit := include "penstock.bytes" (include "penstock.text" .memory) | float64 -}}
{{- if ge (include "penstock.bytes" $.Values.redis.maxmemory | float64) $limit -}}
{{- fail (printf "redis.maxmemory: %s is not less than redis.resources.limits.memory, %s: the server would be killed before it refuses messages" $.Values.redis.maxmemory (include "penstock.text" .memory)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The bytes of a size in the notation of Redis or Kubernetes. */}}
{{- define "penstock.bytes" -}}
{{- $kb := 1024.0 -}}{{- $mb := mulf $kb $kb -}}{{- $gb := mulf $mb $kb -}}{{- $tb := mulf $gb $kb -}}
{{- $units := dict "" 1.0 "m" 1e6 "M" 1e6 "k" 1e3 "K" 1e3 "g" 1e9 "G" 1e9 "T" 1e12 "kb" $kb "Ki" $kb "mb" $mb "Mi" $mb "gb" $gb "Gi" $gb "Ti" $tb -}}
{{- $unit := regexFind "[A-Za-z]*$" . -}}
{{- mulf (trimSuffix $unit . | float64) (get $units $unit | default 1e18) | toJson -}}
{{- end }}
