{{/* Common parts of the operator and the hook before an uninstall. */}}

{{/* Names of cluster-scoped objects: (list $ suffix). Two namespaces may have releases of the same name; the name of a namespace
contains no dots. */}}
{{- define "penstock.clustername" -}}
{{- $root := index . 0 -}}
{{- printf "%s.%s-%s" $root.Release.Namespace (include "penstock.fullname" $root) (index . 1) }}
{{- end }}

{{/* The watched namespaces, or `*`: (list $ "operator"), or (list $ "uninstall"), which includes earlier ones. */}}
{{- define "penstock.operator.namespaces" -}}
{{- $root := index . 0 -}}{{- $own := $root.Values.operator -}}
{{- $former := ternary $own.uninstallHook.namespaces list (eq (index . 1) "uninstall") -}}
{{- if $own.watch.allNamespaces }}*{{ else -}}
{{- concat ($own.watch.namespaces | default (list $root.Release.Namespace)) $former | uniq | join " " }}
{{- end -}}
{{- end }}

{{/* A Role with its binding in each of these namespaces: (dict "root" $ "name" .. "account" .. "rules" yaml). */}}
{{- define "penstock.operator.grant" -}}
{{- $ := . -}}
{{- $everywhere := .root.Values.operator.watch.allNamespaces -}}
{{- range $namespace := ternary (list "") (splitList " " (include "penstock.operator.namespaces" (list .root .name))) $everywhere }}
{{- $name := ternary (include "penstock.clustername" (list $.root $.name)) (printf "%s-%s" (include "penstock.fullname" $.root) $.name) $everywhere }}
{{- if and $namespace (ne $namespace $.root.Release.Namespace) }}{{ $name = include "penstock.clustername" (list $.root $.name) }}{{ end }}
{{- $head := dict "root" $.root "name" $name "component" "operator" "clusterwide" $everywhere "namespace" $namespace }}
---
{{ include "penstock.role" (dict "head" $head "rules" $.rules "account" $.account) }}
{{- end }}
{{- end }}

{{/* A Role or ClusterRole with its binding: (dict "head" .. "rules" yaml "account" ..). */}}
{{- define "penstock.role" -}}
{{- $kind := ternary "ClusterRole" "Role" (.head.clusterwide | default false) -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}
{{ include "penstock.metadata" .head }}
rules:
  {{- .rules | trim | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ $kind }}Binding
{{ include "penstock.metadata" .head }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: {{ $kind | toJson }}, name: {{ .head.name | toJson }}}
subjects:
  - {kind: ServiceAccount, name: {{ .account | toJson }}, namespace: {{ .head.root.Release.Namespace | toJson }}}
{{- end }}

{{/* (list $ "operator") or (list $ "uninstall") */}}
{{- define "penstock.operator.env" -}}
{{- $root := index . 0 -}}
- name: POD_NAMESPACE
  valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
- {name: PENSTOCK_OPERATOR_NAMESPACES, value: {{ include "penstock.operator.namespaces" . | replace " " "," | quote }}}
- {name: PENSTOCK_OPERATOR_LOG_LEVEL, value: {{ $root.Values.log.level | toJson }}}
- {name: PENSTOCK_OPERATOR_LOG_FORMAT, value: {{ $root.Values.log.format | toJson }}}
{{- end }}

{{/* The environment of the operator. */}}
{{- define "penstock.operator.podEnv" -}}
{{- $own := .Values.operator -}}
{{ include "penstock.operator.env" (list . "operator") }}
{{- with $own.discover.namespaces }}
- {name: PENSTOCK_OPERATOR_DISCOVER_NAMESPACES, value: {{ join "," . | quote }}}
{{- end }}
- {name: PENSTOCK_OPERATOR_STORE, value: {{ include "penstock.store" . | toJson }}}
- {name: PENSTOCK_OPERATOR_RQPRC_CONFIGMAP, value: {{ ternary (printf "%s-rqprc" (include "penstock.fullname" .)) "" $own.rqprc | quote }}}
- {name: PENSTOCK_OPERATOR_DATASET_CONFIGMAP, value: {{ printf "%s-dataset" (include "penstock.fullname" .) | toJson }}}
- {name: PENSTOCK_OPERATOR_HEALTH_HOST, value: {{ .Values.edgeDefaults.bindAddress | toJson }}}
- {name: PENSTOCK_OPERATOR_HEALTH_PORT, value: {{ $own.healthPort | quote }}}
- {name: PENSTOCK_OPERATOR_SWEEP_S, value: {{ $own.sweepSeconds | quote }}}
- {name: PENSTOCK_OPERATOR_DELETE_TIMEOUT_S, value: {{ $own.deleteTimeoutSeconds | quote }}}
- {name: PENSTOCK_OPERATOR_ACCEPT_LOSS, value: {{ $own.acceptLoss | quote }}}
{{- with .Values.monitoring.queues }}
{{- if .enabled }}
- {name: PENSTOCK_OPERATOR_QUEUE_METRICS, value: "true"}
- {name: PENSTOCK_OPERATOR_MAX_QUEUES, value: {{ .max | quote }}}
{{- end }}
{{- end }}
{{- with include "penstock.tracing.place" . | default "{}" | fromJson }}
- {name: {{ printf "PENSTOCK_TRACING__%s" (upper .name) }}, value: {{ .url | toJson }}}
- {name: PENSTOCK_TRACING__MOST_FOLLOWED_PER_S, value: {{ $.Values.tracing.mostFollowedPerSecond | quote }}}
{{- end }}
{{- include "penstock.tracing.env" . }}
{{- include "penstock.storeEnv" (list . "admin") }}
{{- with $own.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
