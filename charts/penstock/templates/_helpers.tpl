{{/* Values stand in templates by toJson: texts are quoted, and whole numbers stay whole, which YAML of templates makes floats
of. Where a text is wanted of what may be a number, this one. */}}
{{- define "penstock.text" -}}
{{- if kindIs "string" . }}{{ . }}{{ else }}{{ toJson . }}{{ end -}}
{{- end }}

{{- define "penstock.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{/* 40: the longest thing that is put behind it has 23 characters, and a name may have 63. */}}
{{- define "penstock.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains (include "penstock.name" .) .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "penstock.name" .) | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* What never changes of a component's pods: (list $ component). */}}
{{- define "penstock.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "penstock.name" $root | toJson }}
app.kubernetes.io/instance: {{ $root.Release.Name | toJson }}
app.kubernetes.io/component: {{ index . 1 | toJson }}
{{- end }}

{{/* (list $ component), and labels of the object's own as a third. */}}
{{- define "penstock.labels" -}}
{{- $root := index . 0 -}}
{{ include "penstock.podLabels" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | toJson }}
app.kubernetes.io/managed-by: {{ $root.Release.Service | toJson }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | toJson }}
{{- end }}

{{/* Whether an object of these labels is this very chart's, whatever name it had: (list $ labels). One release may have the chart
twice, by aliases of a chart around it; an alias is the chart's name then. Empty: it is not. */}}
{{- define "penstock.isOwn" -}}
{{- $root := index . 0 -}}{{- $labels := index . 1 | default dict -}}
{{- $chart := printf "^%s-[0-9]+[.]" $root.Chart.Name -}}
{{- if and (eq (get $labels "app.kubernetes.io/instance") $root.Release.Name) (regexMatch $chart (get $labels "helm.sh/chart")) }}true{{ end -}}
{{- end }}

{{/* Labels of pods: no version is among them, as a new one would restart all, Redis too. (list $ component), and labels of their own as a third. */}}
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

{{/* Annotations of a pod: those of the pod itself, of all objects and of all pods: (list $ own). */}}
{{- define "penstock.podAnnotations" -}}
{{- $root := index . 0 -}}
{{- $ofAll := include "penstock.said" ($root.Values.podAnnotations | default dict) | fromYaml -}}
{{- with merge (dict) (index . 1 | default dict) $root.Values.commonAnnotations $ofAll }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* The head of every object: (dict "root" $ "name" .. "component" .. "labels" .. "annotations" .. "clusterwide" bool "namespace" ..). */}}
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

{{/* (list $ image): global.imageRegistry is in place of its own. */}}
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

{{/* Pod Security "restricted", and over it what the values say. Called with $, or with a map that has it as root. */}}
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

{{/* Where pods of a component go: what stands under these names of its values. */}}
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

{{/* How pods of a selector are spread: (list constraints selector). */}}
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

{{/* Lays one map over another, which is changed, at every depth: (list onto over). Sprig's own takes false for nothing. What is
null is taken away, as Helm itself does it only where the chart has a default in that very place; below `settings` it is a value. */}}
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

{{/* A map without what is null or "", at every depth. A chart around this one has no other way to take a default out: Helm drops
nulls of its values.yaml. */}}
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
