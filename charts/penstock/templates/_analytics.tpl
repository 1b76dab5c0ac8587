{{/* The analytics driver: spark-submit in client mode, with threads of its own for executors unless told otherwise. */}}

{{- define "penstock.analytics.name" -}}
{{ include "penstock.fullname" . }}-analytics
{{- end }}

{{/* Settings of Spark, by name. JSON. */}}
{{- define "penstock.analytics.conf" -}}
{{- $own := .Values.analytics -}}
{{- $conf := dict "spark.ui.enabled" "false" -}}
{{- if $own.executors.enabled -}}
{{- $name := include "penstock.analytics.name" . -}}
{{- include "penstock.overlay" (list $conf (dict
  "spark.kubernetes.namespace" .Release.Namespace
  "spark.kubernetes.container.image" (include "penstock.image" (list . $own.image))
  "spark.kubernetes.authenticate.serviceAccountName" $name
  "spark.kubernetes.authenticate.caCertFile" "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
  "spark.kubernetes.authenticate.oauthTokenFile" "/var/run/secrets/kubernetes.io/serviceaccount/token"
  "spark.kubernetes.driver.pod.name" "$(POD_NAME)"
  "spark.kubernetes.executor.podNamePrefix" "$(POD_NAME)"
  "spark.kubernetes.executor.podTemplateFile" "/etc/penstock/executor.yaml"
  "spark.driver.host" (printf "%s.%s.svc.%s" $name .Release.Namespace .Values.clusterDomain)
  "spark.driver.bindAddress" "0.0.0.0"
  "spark.driver.port" "7078"
  "spark.blockManager.port" "7079"
  "spark.executor.instances" (include "penstock.text" $own.executors.instances)
  "spark.executor.cores" (include "penstock.text" $own.executors.cores)
  "spark.executor.memory" $own.executors.memory)) -}}
{{- end -}}
{{- include "penstock.overlay" (list $conf $own.sparkConf) -}}
{{- toJson $conf -}}
{{- end }}

{{- define "penstock.analytics.pod" -}}
{{- $own := .Values.analytics -}}
restartPolicy: Never
serviceAccountName: {{ include "penstock.analytics.name" . | toJson }}
automountServiceAccountToken: {{ $own.executors.enabled | toJson }}
enableServiceLinks: false
{{- with include "penstock.pullSecrets" . | trim }}
{{ . }}
{{- end }}
{{ include "penstock.podSecurity" . }}
{{- with include "penstock.placement" $own | trim }}
{{ . }}
{{- end }}
containers:
  - name: driver
    image: {{ include "penstock.image" (list . $own.image) | toJson }}
    imagePullPolicy: {{ $own.image.pullPolicy | toJson }}
    command: [spark-submit]
    args:
      - --master={{ ternary "k8s://https://kubernetes.default.svc" "local[*]" $own.executors.enabled }}
      - --deploy-mode=client
      {{- range $setting, $value := include "penstock.analytics.conf" . | fromJson }}
      - {{ printf "--conf=%s=%s" $setting (include "penstock.text" $value) | toJson }}
      {{- end }}
      - {{ $own.application | toJson }}
      {{- range $own.arguments }}
      - {{ . | quote }}
      {{- end }}
    {{- include "penstock.containerSecurity" . | nindent 4 }}
    env:
      {{- include "penstock.analytics.env" . | nindent 6 }}
    resources:
      {{- toYaml $own.resources | nindent 6 }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      {{- include "penstock.storeMounts" . | nindent 6 }}
      {{- if $own.executors.enabled }}
      - {name: executor, mountPath: /etc/penstock/executor.yaml, subPath: executor.yaml, readOnly: true}
      {{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  {{- include "penstock.storeVolumes" . | nindent 2 }}
  {{- if $own.executors.enabled }}
  - name: executor
    configMap: {name: {{ include "penstock.analytics.name" . | toJson }}}
  {{- end }}
{{- end }}

{{- define "penstock.analytics.env" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- {name: SPARK_LOCAL_DIRS, value: /tmp}
{{- include "penstock.storeEnv" (list . "edge") }}
{{- with .Values.analytics.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Pods of executors: Spark fills in the rest. */}}
{{- define "penstock.analytics.executor" -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    {{- include "penstock.selector" (list . "analytics-executor") | nindent 4 }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- include "penstock.podSecurity" . | nindent 2 }}
  containers:
    - name: executor
      {{- include "penstock.containerSecurity" . | nindent 6 }}
      env:
        {{- include "penstock.storeEnv" (list . "edge") | trim | nindent 8 }}
        - {name: SPARK_LOCAL_DIRS, value: /tmp}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        {{- include "penstock.storeMounts" . | nindent 8 }}
  volumes:
    - name: tmp
      emptyDir: {}
    {{- include "penstock.storeVolumes" . | nindent 4 }}
{{- end }}
