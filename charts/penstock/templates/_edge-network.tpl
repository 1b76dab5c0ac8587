{{/* Services and the NetworkPolicy of an edge. */}}

{{/* Whether the edge's Service has this port: (list edge port). A Service that is reachable from outside omits ports for peers,
which are trusted, unless the port sets `expose`. */}}
{{- define "penstock.edge.isExposed" -}}
{{- $edge := index . 0 -}}{{- $its := index . 1 -}}
{{- $isInside := eq (dig "service" "type" "ClusterIP" $edge) "ClusterIP" -}}
{{- if and (ne (toString $its.enabled) "false") (ne (toString $its.expose) "false") -}}
{{- if or $isInside (ne (toString $its.audience) "peers") $its.expose $its.nodePort }}true{{ end -}}
{{- end -}}
{{- end }}

{{- define "penstock.edge.servicePorts" -}}
{{- $edge := .edge -}}
{{- range $port, $its := .edge.ports }}
{{- if include "penstock.edge.isExposed" (list $edge $its) }}
- name: {{ $port | toJson }}
  port: {{ $its.servicePort | default $its.port | toJson }}
  targetPort: {{ $port | toJson }}
  protocol: {{ $its.protocol | default "TCP" | toJson }}
  {{- with $its.nodePort }}
  nodePort: {{ . | toJson }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Its labels are copied to EndpointSlices, where operators discover it. */}}
{{- define "penstock.edge.service" -}}
{{- $labels := dict "penstock.dev/store" (include "penstock.store" .root) -}}
{{- if .edge.service.discover }}{{ $_ := set $labels "penstock.dev/discover" "true" }}{{ end -}}
{{- include "penstock.overlay" (list $labels .edge.service.labels) -}}
apiVersion: v1
kind: Service
{{ include "penstock.metadata" (dict "root" .root "name" .fullname "component" .name "labels" $labels "annotations" .edge.service.annotations) }}
spec:
  type: {{ .edge.service.type | toJson }}
  selector:
    {{- .selector | nindent 4 }}
  {{- range $field := list "clusterIP" "loadBalancerIP" "loadBalancerClass" "externalTrafficPolicy" "internalTrafficPolicy" "ipFamilyPolicy" "sessionAffinity" }}
  {{- with get $.edge.service $field }}
  {{ $field }}: {{ . | quote }}
  {{- end }}
  {{- end }}
  {{- range $field := list "loadBalancerSourceRanges" "ipFamilies" }}
  {{- with get $.edge.service $field }}
  {{ $field }}: {{ toJson . }}
  {{- end }}
  {{- end }}
  ports:
    {{- include "penstock.edge.servicePorts" . | trim | nindent 4 }}
    {{- if eq .edge.service.type "ClusterIP" }}
    - {name: health, port: {{ .edge.healthPort | toJson }}, targetPort: health}
    {{- end }}
{{- end }}

{{/* If its Service is external: this one has the remaining ports for clients in the cluster. */}}
{{- define "penstock.edge.inside" -}}
{{- $inner := dict -}}
{{- range $port, $its := include "penstock.edge.plainPorts" . | fromJson -}}
{{- $isOutside := include "penstock.edge.isExposed" (list $.edge (get $.edge.ports $port)) -}}
{{- if and (include "penstock.edge.isExposed" (list dict $its)) (not $isOutside) }}{{ $_ := set $inner $port $its }}{{ end -}}
{{- end -}}
{{- if and $inner .edge.service.discover -}}
{{- $labels := dict "penstock.dev/store" (include "penstock.store" .root) "penstock.dev/discover" "true" -}}
apiVersion: v1
kind: Service
{{ include "penstock.metadata" (dict "root" .root "name" (printf "%s-inside" .fullname) "component" .name "labels" $labels) }}
spec:
  clusterIP: None
  selector:
    {{- .selector | nindent 4 }}
  ports:
    {{- include "penstock.edge.servicePorts" (dict "edge" (dict "ports" $inner)) | trim | nindent 4 }}
{{- end }}
{{- end }}

{{/* For a ServiceMonitor, if the Service is external and therefore has no metrics port. */}}
{{- define "penstock.edge.health" -}}
{{- if and .root.Values.monitoring.serviceMonitor.enabled (ne .edge.service.type "ClusterIP") -}}
apiVersion: v1
kind: Service
{{ include "penstock.metadata" (dict "root" .root "name" (printf "%s-health" .fullname) "component" .name) }}
spec:
  selector:
    {{- .selector | nindent 4 }}
  ports:
    - {name: health, port: {{ .edge.healthPort | toJson }}, targetPort: health}
{{- end }}
{{- end }}

{{/* It includes pods that are not ready: peers find each other before that. */}}
{{- define "penstock.edge.peers" -}}
{{- if .edge.peersService -}}
apiVersion: v1
kind: Service
{{ include "penstock.metadata" (dict "root" .root "name" (printf "%s-peers" .fullname) "component" .name) }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector:
    {{- .selector | nindent 4 }}
  ports:
    {{- include "penstock.edge.servicePorts" (dict "edge" (dict "ports" (include "penstock.edge.plainPorts" . | fromJson))) | trim | nindent 4 }}
{{- end }}
{{- end }}

{{/* A headless Service only has the ports of its pods. */}}
{{- define "penstock.edge.plainPorts" -}}
{{- $ports := deepCopy .edge.ports -}}
{{- range $port := $ports -}}
{{- $_ := unset $port "nodePort" -}}{{- $_ := unset $port "servicePort" -}}
{{- end -}}
{{- toJson $ports -}}
{{- end }}

{{/* The ports of one audience for a NetworkPolicy: (list edge audience). */}}
{{- define "penstock.edge.openPorts" -}}
{{- range (index . 0).ports }}
{{- if and (ne (toString .enabled) "false") (eq (.audience | default "clients") (index $ 1)) }}
- {port: {{ .port | toJson }}, protocol: {{ .protocol | default "TCP" | toJson }}}
{{- end }}
{{- end }}
{{- end }}

{{- define "penstock.edge.network" -}}
{{- if .root.Values.networkPolicy.enabled -}}
{{- $clients := include "penstock.edge.openPorts" (list .edge "clients") | trim -}}
{{- $peers := include "penstock.edge.openPorts" (list .edge "peers") | trim -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
{{ include "penstock.metadata" (dict "root" .root "name" .fullname "component" .name) }}
spec:
  podSelector:
    matchLabels:
      {{- .selector | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    {{- if or $clients .edge.portRanges }}
    - ports:
        {{- with $clients }}{{ . | nindent 8 }}{{ end }}
        {{- range .edge.portRanges }}
        - {{ toJson . }}
        {{- end }}
      {{- with .edge.networkPolicy.from | default .root.Values.networkPolicy.clientsFrom }}
      from:
        {{- toYaml . | nindent 8 }}
        - podSelector:
            matchLabels:
              {{- include "penstock.selector" (list $.root "test") | nindent 14 }}
      {{- end }}
    {{- end }}
    {{- with $peers }}
    - ports:
        {{- . | nindent 8 }}
      from:
        - podSelector:
            matchLabels:
              {{- $.selector | nindent 14 }}
        {{- with $.edge.networkPolicy.peersFrom }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- end }}
    - ports:
        - port: {{ .edge.healthPort | toJson }}
      {{- with .root.Values.networkPolicy.metricsFrom }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- with .root.Values.networkPolicy.ingress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  egress:
    {{- include "penstock.storeEgress" .root | nindent 4 }}
    {{- with include "penstock.tracing.egress" .root | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $peers }}
    - ports:
        {{- . | nindent 8 }}
      to:
        - podSelector:
            matchLabels:
              {{- $.selector | nindent 14 }}
    {{- end }}
    {{- with concat .edge.networkPolicy.egress .root.Values.networkPolicy.egress }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
{{- end }}
