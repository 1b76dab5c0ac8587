{{/* Templates write values with toJson: strings are quoted, and integers stay integers, which toYaml would write as floats.
This helper converts a value that may be a number into a string. */}}
{{- define "penstock.text" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end -}}
{{- end }}

{{- define "penstock.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* 40: the longest suffix has 23 characters, and a name may have 63. */}}
{{- define "penstock.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "penstock.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "penstock.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The selector labels of a component, which never change: (list $ component). */}}
{{- define "penstock.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "penstock.name" $root | toJson }}
app.kubernetes.io/instance: {{ $root.Release.Name | toJson }}
app.kubernetes.io/component: {{ index . 1 | toJson }}
{{- end }}

{{/* The labels of an object: (list $ component), and optionally its own labels. */}}
{{- define "penstock.labels" -}}
{{- $root := index . 0 -}}
{{ include "penstock.podLabels" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | toJson }}
app.kubernetes.io/managed-by: {{ $root.Release.Service | toJson }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | toJson }}
{{- end }}

{{/* Whether an object with these labels belongs to this chart, which may have an alias: (list $ labels). Empty means no. A parent chart may
contain the chart twice in one release, with aliases; the alias is then the chart's name. */}}
{{- define "penstock.isOwn" -}}
{{- $root := index . 0 -}}{{- $labels := index . 1 | default dict -}}
{{- $chart := printf "^%s-[0-9]+[.]" $root.Chart.Name -}}
{{- if and (eq (get $labels "app.kubernetes.io/instance") $root.Release.Name) (regexMatch $chart (get $labels "helm.sh/chart")) }}true{{ end -}}
{{- end }}

{{/* The labels of pods, without the version, since a new one would restart all pods including Redis: (list $ component), and optionally own labels. */}}
{{- define "penstock.podLabels" -}}
{{- $root := index . 0 -}}
{{ include "penstock.selector" . }}
app.kubernetes.io/part-of: penstock
{{- $own := dict }}
{{- if gt (len .) 2 }}{{ $own = index . 2 }}{{ end }}
{{- with merge (dict) $own $root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The annotations of a pod: its own, those of all objects and of all pods: (list $ own). */}}
{{- define "penstock.podAnnotations" -}}
{{- $root := index . 0 -}}
{{- $ofAll := include "penstock.said" ($root.Values.podAnnotations | default dict) | fromYaml -}}
{{- with merge (dict) (index . 1 | default dict) $root.Values.commonAnnotations $ofAll }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* The metadata of every object: (dict "root" $ "name" .. "component" .. "labels" .. "annotations" .. "clusterwide" bool "namespace" ..). */}}
{{- define "penstock.metadata" -}}
metadata:
  name: {{ .name | toJson }}
  {{- if not .clusterwide }}
  namespace: {{ .namespace | default .root.Release.Namespace | toJson }}
  {{- end }}
  labels:
    {{- include "penstock.labels" (list .root .component (.labels | default dict)) | nindent 4 }}
  {{- with merge (dict) (.annotations | default dict) .root.Values.commonAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* The image reference; global.imageRegistry overrides its registry: (list $ image). */}}
{{- define "penstock.image" -}}
{{- $root := index . 0 -}}{{- $image := index . 1 -}}
{{- $registry := $root.Values.global.imageRegistry | default $image.registry -}}
{{- with $registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{ $image.repository }}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default $root.Chart.AppVersion }}{{ end }}
{{- end }}

{{- define "penstock.pullSecrets" -}}
{{- with .Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ ternary . (get (ternary . dict (kindIs "map" .)) "name") (kindIs "string" .) | toJson }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The security context for Pod Security "restricted", merged with the values. Takes $, or a map that has it as root. */}}
{{- define "penstock.podSecurity" -}}
{{- $own := dict "runAsNonRoot" true "runAsUser" 10001 "runAsGroup" 10001 "fsGroup" 10001 "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- include "penstock.overlay" (list $own (.root | default .).Values.podSecurityContext) -}}
securityContext:
  {{- include "penstock.said" $own | nindent 2 }}
{{- end }}

{{- define "penstock.containerSecurity" -}}
{{- $own := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "runAsNonRoot" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- include "penstock.overlay" (list $own (.root | default .).Values.containerSecurityContext) -}}
securityContext:
  {{- include "penstock.said" $own | nindent 2 }}
{{- end }}

{{/* Scheduling of a component's pods, from these values. */}}
{{- define "penstock.placement" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . | toJson }}
{{- end }}
{{- end }}

{{/* Topology spread of the pods of a selector: (list constraints selector). */}}
{{- define "penstock.spread" -}}
{{- $selector := index . 1 -}}
{{- with index . 0 }}
topologySpreadConstraints:
  {{- range . }}
  - {{- toYaml . | nindent 4 }}
    {{- if not .labelSelector }}
    labelSelector:
      matchLabels:
        {{- $selector | nindent 8 }}
    {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Merges the second map into the first, recursively: (list onto over); the first is changed. Sprig's merge treats false as empty. A
null removes the key; Helm itself does this only if the chart has a default for that key. Below `settings`, null is a value. */}}
{{- define "penstock.overlay" -}}
{{- $onto := index . 0 -}}{{- $kept := gt (len .) 2 -}}
{{- range $key, $value := index . 1 -}}
{{- if and (kindIs "map" $value) (kindIs "map" (get $onto $key)) -}}
{{- $both := list (get $onto $key) $value -}}
{{- include "penstock.overlay" (ternary (append $both true) $both (or $kept (eq $key "settings"))) -}}
{{- else if and (kindIs "invalid" $value) (not $kept) -}}
{{- $_ := unset $onto $key -}}
{{- else -}}
{{- $_ := set $onto $key $value -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A map without keys whose value is null or "", recursively. A parent chart has no other way to remove a default: Helm drops
nulls from its values.yaml. */}}
{{- define "penstock.said" -}}
{{- $said := deepCopy . -}}
{{- include "penstock.takeOut" $said -}}
{{- toYaml $said -}}
{{- end }}

{{- define "penstock.takeOut" -}}
{{- range $key, $value := . -}}
{{- if kindIs "map" $value -}}
{{- include "penstock.takeOut" $value -}}
{{- else if or (kindIs "invalid" $value) (eq (toString $value) "") -}}
{{- $_ := unset $ $key -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "penstock.operatorAccount" -}}
{{- if .Values.operator.serviceAccount.create -}}
{{- .Values.operator.serviceAccount.name | default (printf "%s-operator" (include "penstock.fullname" .)) }}
{{- else -}}
{{- .Values.operator.serviceAccount.name }}
{{- end }}
{{- end }}
