{{/* The Deployment or StatefulSet of an edge. */}}

{{- define "penstock.edge.workload" -}}
apiVersion: apps/v1
kind: {{ .edge.workload }}
{{ include "penstock.metadata" (dict "root" .root "name" .fullname "component" .name) }}
spec:
  {{- with include "penstock.edge.replicas" . }}
  replicas: {{ . }}
  {{- end }}
  revisionHistoryLimit: {{ .edge.revisionHistoryLimit | toJson }}
  {{- if eq .edge.workload "StatefulSet" }}
  serviceName: {{ ternary (printf "%s-peers" .fullname) .fullname .edge.peersService | toJson }}
  podManagementPolicy: Parallel
  {{- end }}
  {{- with include "penstock.edge.strategy" . | trim }}
  {{ ternary "updateStrategy" "strategy" (eq $.edge.workload "StatefulSet") }}:
    {{- . | nindent 4 }}
  {{- end }}
  selector:
    matchLabels:
      {{- .selector | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "penstock.podLabels" (list .root .name .edge.podLabels) | nindent 8 }}
        penstock.dev/edge: {{ .name | toJson }}
      annotations:
        checksum/config: {{ include "penstock.edge.file" . | sha256sum | toJson }}
        checksum/store: {{ include "penstock.storeChecksum" .root | toJson }}
        kubectl.kubernetes.io/default-container: edge
        {{- include "penstock.podAnnotations" (list .root .edge.podAnnotations) | nindent 8 }}
    spec:
      {{- include "penstock.edge.pod" . | nindent 6 }}
{{- end }}

{{/* On the node's network two pods of a node would use the same ports: the old pod is deleted first. For a StatefulSet, only the
supported fields of the strategy in `edgeDefaults` are used. */}}
{{- define "penstock.edge.strategy" -}}
{{- $said := .edge.strategy -}}
{{- if and $said (eq .edge.workload "StatefulSet") }}
{{- $known := dict -}}
{{- if has $said.type (list "RollingUpdate" "OnDelete") }}{{ $_ := set $known "type" $said.type }}{{ end -}}
{{- with pick ($said.rollingUpdate | default dict) "partition" "maxUnavailable" }}{{ $_ := set $known "rollingUpdate" . }}{{ end -}}
{{- with $known }}{{ toYaml . }}{{ end }}
{{- else if $said }}
{{- toYaml $said }}
{{- else if eq .edge.workload "Deployment" }}
type: RollingUpdate
rollingUpdate: {{ ternary "{maxSurge: 0, maxUnavailable: 1}" "{maxSurge: 1, maxUnavailable: 0}" .edge.hostNetwork }}
{{- end }}
{{- end }}

{{- define "penstock.edge.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
terminationGracePeriodSeconds: {{ include "penstock.edge.grace" . }}
{{- with include "penstock.pullSecrets" .root | trim }}
{{ . }}
{{- end }}
{{- if .edge.hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{ include "penstock.podSecurity" . }}
{{- with include "penstock.placement" .edge | trim }}
{{ . }}
{{- end }}
{{- with include "penstock.spread" (list .edge.topologySpread .selector) | trim }}
{{ . }}
{{- end }}
{{- with .edge.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: edge
    image: {{ include "penstock.image" (list .root .edge.image) | toJson }}
    imagePullPolicy: {{ .edge.image.pullPolicy | toJson }}
    args: [serve, {{ .name | toJson }}]
    {{- include "penstock.containerSecurity" . | nindent 4 }}
    env:
      {{- include "penstock.edge.env" . | trim | nindent 6 }}
    {{- with .edge.extraEnvFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    ports:
      {{- range $port, $its := .edge.ports }}
      {{- if ne (toString $its.enabled) "false" }}
      - {name: {{ $port | toJson }}, containerPort: {{ $its.port | toJson }}, protocol: {{ $its.protocol | default "TCP" | toJson }}}
      {{- end }}
      {{- end }}
      - {name: health, containerPort: {{ .edge.healthPort | toJson }}}
    startupProbe:
      {{- include "penstock.edge.probe" (list "/healthz" .edge.probes.startup) | nindent 6 }}
    readinessProbe:
      {{- include "penstock.edge.probe" (list "/readyz" .edge.probes.readiness) | nindent 6 }}
    livenessProbe:
      {{- include "penstock.edge.probe" (list "/healthz" .edge.probes.liveness) | nindent 6 }}
    {{- if .edge.drain.preStopSleepSeconds }}
    lifecycle:
      preStop:
        sleep:
          seconds: {{ .edge.drain.preStopSleepSeconds | toJson }}
    {{- end }}
    resources:
      {{- include "penstock.resources" (list (printf "edges.%s.resources" .name) .edge.resources) | nindent 6 }}
    volumeMounts:
      {{- include "penstock.edge.mounts" . | nindent 6 }}
  {{- with .edge.extraContainers }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
volumes:
  {{- include "penstock.edge.volumes" . | nindent 2 }}
{{- end }}

{{- define "penstock.edge.probe" -}}
{{- $probe := dict "httpGet" (dict "path" (index . 0) "port" "health") -}}
{{- include "penstock.overlay" (list $probe (index . 1)) -}}
{{- toYaml $probe }}
{{- end }}

{{/* Variables that others refer to come first. */}}
{{- define "penstock.edge.env" -}}
{{- range $variable, $field := dict "POD_NAME" "metadata.name" "POD_NAMESPACE" "metadata.namespace" "POD_IP" "status.podIP" "HOST_IP" "status.hostIP" }}
- name: {{ $variable | toJson }}
  valueFrom: {fieldRef: {fieldPath: {{ $field | toJson }}}}
{{- end }}
{{- if .edge.peersService }}
- name: PEERS_SERVICE
  value: {{ .fullname }}-peers.{{ .root.Release.Namespace }}.svc.{{ .root.Values.clusterDomain }}
{{- end }}
- name: PENSTOCK_CONFIG
  value: /etc/penstock/penstock.yaml
{{- include "penstock.storeEnv" (list .root "edge") }}
{{- include "penstock.tracing.env" .root }}
{{- range $variable, $value := .edge.env }}
- name: {{ $variable | toJson }}
  value: {{ include "penstock.text" $value | quote }}
{{- end }}
{{- with .edge.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "penstock.edge.mounts" -}}
- {name: config, mountPath: /etc/penstock/penstock.yaml, subPath: penstock.yaml, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if .edge.tls.secretName }}
- {name: tls, mountPath: /etc/penstock/tls, readOnly: true}
{{- end }}
{{- include "penstock.storeMounts" .root }}
{{- with .edge.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "penstock.edge.volumes" -}}
- name: config
  configMap: {name: {{ .fullname | toJson }}}
- name: tmp
  emptyDir: {}
{{- with .edge.tls.secretName }}
- name: tls
  secret: {secretName: {{ . | toJson }}, defaultMode: 0440}
{{- end }}
{{- include "penstock.storeVolumes" .root }}
{{- with .edge.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}
