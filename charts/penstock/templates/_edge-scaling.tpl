{{/* The number of pods of an edge, and its disruption budget. */}}

{{/* Empty if an autoscaler sets `replicas`. helm may still own the field from an earlier release without an autoscaler: if omitted, the
API server would set it to 1. So it keeps its current value until the autoscaler has changed it and owns it. Without server-side apply (Helm 3, `--server-side=false`)
helm removes fields that its last manifest did not have, even if the autoscaler owns them: in that case the current value is always written. */}}
{{- define "penstock.edge.replicas" -}}
{{- if eq .edge.autoscaling.type "none" -}}
{{- .edge.replicas | toJson -}}
{{- else -}}
{{- $live := lookup "apps/v1" .edge.workload .root.Release.Namespace .fullname | default dict -}}
{{- $isSaid := false -}}
{{- range dig "metadata" "managedFields" list $live -}}
{{- $isApplied := and (eq .operation "Apply") (dig "f:spec" "f:replicas" nil .fieldsV1 | kindIs "map") -}}
{{- if and (eq .manager "helm") (or $isApplied (eq .operation "Update")) }}{{ $isSaid = true }}{{ end -}}
{{- end -}}
{{- if $isSaid }}{{ $live.spec.replicas | toJson }}{{ end -}}
{{- end -}}
{{- end }}

{{- define "penstock.edge.pdb" -}}
{{- if .edge.pdb.enabled -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
{{ include "penstock.metadata" (dict "root" .root "name" .fullname "component" .name) }}
spec:
  {{- if ne .edge.pdb.minAvailable nil }}
  minAvailable: {{ .edge.pdb.minAvailable | toJson }}
  {{- else }}
  maxUnavailable: {{ ternary 1 .edge.pdb.maxUnavailable (eq .edge.pdb.maxUnavailable nil) | toJson }}
  {{- end }}
  unhealthyPodEvictionPolicy: {{ .edge.pdb.unhealthyPodEvictionPolicy | toJson }}
  selector:
    matchLabels:
      {{- .selector | nindent 6 }}
{{- end }}
{{- end }}

{{- define "penstock.edge.autoscaling" -}}
{{- if eq .edge.autoscaling.type "hpa" }}
{{- include "penstock.edge.hpa" . }}
{{- else if eq .edge.autoscaling.type "keda" }}
{{- include "penstock.edge.keda" . }}
{{- end }}
{{- end }}

{{- define "penstock.edge.hpa" -}}
{{- $own := .edge.autoscaling -}}
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
{{ include "penstock.metadata" (dict "root" .root "name" .fullname "component" .name) }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: {{ .edge.workload | toJson }}, name: {{ .fullname | toJson }}}
  minReplicas: {{ $own.minReplicas | toJson }}
  maxReplicas: {{ $own.maxReplicas | toJson }}
  metrics:
    {{- range $resource, $percent := dict "cpu" $own.hpa.targetCPUUtilizationPercentage "memory" $own.hpa.targetMemoryUtilizationPercentage }}
    {{- if $percent }}
    - type: Resource
      resource: {name: {{ $resource | toJson }}, target: {type: Utilization, averageUtilization: {{ $percent | toJson }}}}
    {{- end }}
    {{- end }}
    {{- with $own.hpa.metrics }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with $own.behavior }}
  behavior:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Scales by ready and in-flight messages, not by a stream's lag, which excludes those in flight. */}}
{{- define "penstock.edge.keda" -}}
{{- $own := .edge.autoscaling -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
{{ include "penstock.metadata" (dict "root" .root "name" .fullname "component" .name) }}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: {{ .edge.workload | toJson }}, name: {{ .fullname | toJson }}}
  minReplicaCount: {{ $own.minReplicas | toJson }}
  maxReplicaCount: {{ $own.maxReplicas | toJson }}
  pollingInterval: {{ $own.keda.pollingInterval | toJson }}
  cooldownPeriod: {{ $own.keda.cooldownPeriod | toJson }}
  {{- with $own.behavior }}
  advanced:
    horizontalPodAutoscalerConfig:
      behavior:
        {{- toYaml . | nindent 8 }}
  {{- end }}
  triggers:
    {{- with $own.keda.serverAddress }}
    - type: prometheus
      metadata:
        serverAddress: {{ . | quote }}
        query: {{ tpl $own.keda.query (dict "edge" $.name "namespace" $.root.Release.Namespace "store" (include "penstock.fullname" $.root) "Template" $.root.Template) | quote }}
        threshold: {{ include "penstock.text" $own.keda.threshold | quote }}
        {{- with $own.keda.activationThreshold }}
        activationThreshold: {{ include "penstock.text" . | quote }}
        {{- end }}
      {{- with $own.keda.authenticationRef }}
      authenticationRef: {name: {{ . | toJson }}}
      {{- end }}
    {{- end }}
    {{- with $own.keda.triggers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
