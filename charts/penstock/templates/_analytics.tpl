{{/* The analytics job: a pod with Spark's driver, which runs executors as threads unless executors are enabled. */}}

{{- define "penstock.analytics.name" -}}
{{ include "penstock.fullname" . }}-analytics
{{- end }}

{{/* The job's output: a URL, or the folder where the claim is mounted. */}}
{{- define "penstock.analytics.output" -}}
{{ .Values.analytics.output.url | default "/output" }}
{{- end }}

{{- define "penstock.analytics.claim" -}}
{{ .Values.analytics.output.existingClaim | default (include "penstock.analytics.name" .) }}
{{- end }}

{{/* Spark's heap, a part of the container's limit: the rest is for other memory of Java and for Python. */}}
{{- define "penstock.analytics.driverMemory" -}}
{{- $own := .Values.analytics -}}
{{- $limit := ($own.resources.limits | default dict).memory -}}
{{- if $own.driverMemory -}}
{{ $own.driverMemory }}
{{- else if $limit -}}
{{ divf (include "penstock.bytes" (include "penstock.text" $limit) | float64) 2097152.0 | floor | int64 }}m
{{- else -}}
2g
{{- end -}}
{{- end }}

{{- define "penstock.analytics.hasPods" -}}
{{- or .Values.analytics.executors.enabled (eq .Values.analytics.mode "scheduledSparkApplication") | toJson -}}
{{- end }}

{{/* Spark settings by name, as JSON. A driver that creates executor pods needs rights for pods only. */}}
{{- define "penstock.analytics.conf" -}}
{{- $own := .Values.analytics -}}
{{- $conf := dict -}}
{{- if eq (include "penstock.analytics.hasPods" .) "true" -}}
{{- include "penstock.overlay" (list $conf (dict
  "spark.kubernetes.driver.service.deleteOnTermination" "false"
  "spark.kubernetes.driver.ownPersistentVolumeClaim" "false"
  "spark.kubernetes.driver.reusePersistentVolumeClaim" "false"
  "spark.kubernetes.executor.disableConfigMap" "true"
  "spark.driver.port" "7078"
  "spark.blockManager.port" "7079")) -}}
{{- end -}}
{{- if eq $own.mode "cronjob" }}{{ include "penstock.overlay" (list $conf (include "penstock.analytics.clientConf" . | fromJson)) }}{{ end -}}
{{- include "penstock.overlay" (list $conf $own.sparkConf) -}}
{{- toJson $conf -}}
{{- end }}

{{/* Settings of a driver that starts executors: its address and their resources, as JSON. */}}
{{- define "penstock.analytics.clientConf" -}}
{{- $own := .Values.analytics -}}
{{- $conf := dict -}}
{{- if $own.executors.enabled -}}
{{- include "penstock.overlay" (list $conf (dict
  "spark.kubernetes.namespace" .Release.Namespace
  "spark.kubernetes.container.image" (include "penstock.image" (list . $own.image))
  "spark.kubernetes.container.image.pullPolicy" $own.image.pullPolicy
  "spark.kubernetes.authenticate.caCertFile" "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
  "spark.kubernetes.authenticate.oauthTokenFile" "/var/run/secrets/kubernetes.io/serviceaccount/token"
  "spark.kubernetes.driver.pod.name" "$(POD_NAME)"
  "spark.kubernetes.executor.podTemplateFile" "/etc/penstock/executor.yaml"
  "spark.kubernetes.executor.podTemplateContainerName" "executor"
  "spark.driver.host" "$(POD_IP)"
  "spark.driver.bindAddress" "$(POD_IP)"
  "spark.executor.instances" (include "penstock.text" $own.executors.instances)
  "spark.executor.cores" (include "penstock.text" $own.executors.cores)
  "spark.executor.memory" $own.executors.memory
  "spark.executor.memoryOverhead" $own.executors.memoryOverhead)) -}}
{{- with $own.executors.cpuRequest }}{{ $_ := set $conf "spark.kubernetes.executor.request.cores" (include "penstock.text" .) }}{{ end -}}
{{- with $own.executors.cpuLimit }}{{ $_ := set $conf "spark.kubernetes.executor.limit.cores" (include "penstock.text" .) }}{{ end -}}
{{- end -}}
{{- toJson $conf -}}
{{- end }}

{{/* Options of the job. `$` in values is escaped, since Kubernetes would expand it as a variable. */}}
{{- define "penstock.analytics.flags" -}}
{{- $own := .Values.analytics -}}
{{- $job := $own.job -}}
- --output={{ include "penstock.analytics.output" . }}
- --run-id={{ ternary "$(RUN_NAME)-$(RUN_UID)" "$(RUN_NAME)" (eq $own.mode "cronjob") }}
- --master={{ ternary "k8s://https://kubernetes.default.svc" "local[*]" (eq (include "penstock.analytics.hasPods" .) "true") }}
- --driver-memory={{ include "penstock.analytics.driverMemory" . }}
- {{ printf "--bodies=%s" (include "penstock.text" $job.bodies) | toJson }}
{{- range $job.redact }}
- {{ printf "--redact=%s" . | replace "$" "$$" | toJson }}
{{- end }}
- --late-hours={{ toJson $job.lateHours }}
- --retention-days={{ toJson $job.retentionDays }}
- --week-days={{ toJson $job.weekDays }}
- --top={{ toJson $job.top }}
- --objective={{ toJson $job.objective }}
- --report-hours={{ toJson $job.reportHours }}
- --clock-slack={{ toJson $job.clockSlackSeconds }}
- --lock-s={{ toJson $job.lockSeconds }}
- --patience-s={{ toJson $job.patienceSeconds }}
- --{{ if not $job.failOnDataLoss }}no-{{ end }}fail-on-data-loss
{{- if eq $own.mode "cronjob" }}
{{- range $setting, $value := include "penstock.analytics.conf" . | fromJson }}
- {{ printf "--conf=%s=%s" $setting (include "penstock.text" $value) | toJson }}
{{- end }}
{{- end }}
{{- range $own.arguments }}
- {{ . | replace "$" "$$" | toJson }}
{{- end }}
{{- end }}

{{- define "penstock.analytics.pod" -}}
{{- $own := .Values.analytics -}}
restartPolicy: Never
terminationGracePeriodSeconds: 30
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
    args:
      {{- include "penstock.analytics.flags" . | nindent 6 }}
    {{- include "penstock.containerSecurity" . | nindent 4 }}
    env:
      {{- include "penstock.analytics.env" . | trim | nindent 6 }}
    {{- with $own.extraEnvFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    resources:
      {{- include "penstock.resources" (list "analytics.resources" $own.resources) | nindent 6 }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      {{- include "penstock.analytics.mounts" . | nindent 6 }}
      {{- if $own.executors.enabled }}
      - {name: executor, mountPath: /etc/penstock/executor.yaml, subPath: executor.yaml, readOnly: true}
      {{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  {{- include "penstock.analytics.volumes" . | nindent 2 }}
  {{- if $own.executors.enabled }}
  - name: executor
    configMap: {name: {{ include "penstock.analytics.name" . | toJson }}}
  {{- end }}
{{- end }}

{{/* The first pod that mounts the claim: many storage classes create volumes only for a pod, and helm waits for bound claims. The pod
ends after a write to the volume. The pods of a Job are immutable: each release has its own Job. */}}
{{- define "penstock.analytics.binding" -}}
{{- $own := .Values.analytics -}}
metadata:
  labels:
    {{- include "penstock.podLabels" (list . "analytics-output" $own.podLabels) | nindent 4 }}
  {{- with include "penstock.podAnnotations" (list . $own.podAnnotations) }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with include "penstock.pullSecrets" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- include "penstock.podSecurity" . | nindent 2 }}
  {{- with include "penstock.placement" $own | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: output
      image: {{ include "penstock.image" (list . $own.image) | toJson }}
      imagePullPolicy: {{ $own.image.pullPolicy | toJson }}
      command: [python, -c, "import tempfile; tempfile.TemporaryFile(dir='{{ include "penstock.analytics.output" . }}').close()"]
      {{- include "penstock.containerSecurity" . | nindent 6 }}
      resources:
        {{- include "penstock.resources" (list "analytics.output.prepare.resources" $own.output.prepare.resources) | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: output, mountPath: {{ include "penstock.analytics.output" . }}}
  volumes:
    - name: tmp
      emptyDir: {}
    - name: output
      persistentVolumeClaim: {claimName: {{ include "penstock.analytics.claim" . | toJson }}}
{{- end }}

{{/* All attempts of a Job share its name and uid, so the second attempt continues the run of the first. The name alone is not enough: a
new Job may reuse it after the old one is deleted, and would find its run finished. The name of a SparkApplication contains a time and is unique. */}}
{{- define "penstock.analytics.env" -}}
{{- if eq .Values.analytics.mode "cronjob" }}
- name: RUN_UID
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']"}}
{{- end }}
- name: RUN_NAME
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['{{ ternary "batch.kubernetes.io/job-name" "sparkoperator.k8s.io/app-name" (eq .Values.analytics.mode "cronjob") }}']"}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- {name: SPARK_LOCAL_DIRS, value: /tmp}
{{- include "penstock.storeEnv" (list . "edge") }}
{{- with .Values.analytics.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Volumes of driver and executors: the output has the same path in both. */}}
{{- define "penstock.analytics.mounts" -}}
{{- $own := .Values.analytics -}}
{{- if not $own.output.url }}
- {name: output, mountPath: {{ include "penstock.analytics.output" . }}}
{{- end }}
{{- include "penstock.storeMounts" . }}
{{- with $own.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "penstock.analytics.volumes" -}}
{{- $own := .Values.analytics -}}
{{- if not $own.output.url }}
- name: output
  persistentVolumeClaim: {claimName: {{ include "penstock.analytics.claim" . | toJson }}}
{{- end }}
{{- include "penstock.storeVolumes" . }}
{{- with $own.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The template of executor pods, which Spark completes. They get the store's URL from the driver. */}}
{{- define "penstock.analytics.executor" -}}
{{- $own := .Values.analytics -}}
apiVersion: v1
kind: Pod
metadata:
  labels:
    {{- include "penstock.podLabels" (list . "analytics-executor" $own.podLabels) | nindent 4 }}
  {{- with include "penstock.podAnnotations" (list . $own.podAnnotations) }}
  annotations:
    {{- . | nindent 4 }}
  {{- end }}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with include "penstock.pullSecrets" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- include "penstock.podSecurity" . | nindent 2 }}
  {{- with include "penstock.placement" $own | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  containers:
    - name: executor
      {{- include "penstock.containerSecurity" . | nindent 6 }}
      {{- with $own.extraEnv }}
      env:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $own.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        # Spark uses volumes of this name for its local files
        - {name: spark-local-dir-tmp, mountPath: /tmp}
        {{- include "penstock.analytics.mounts" . | nindent 8 }}
  volumes:
    - name: spark-local-dir-tmp
      emptyDir: {}
    {{- include "penstock.analytics.volumes" . | nindent 4 }}
{{- end }}

{{/* Contradictions that the schema cannot detect. */}}
{{- define "penstock.analytics.check" -}}
{{- $own := .Values.analytics -}}
{{- $output := $own.output -}}
{{- if and $output.url $output.existingClaim -}}
{{- fail "analytics.output: url and existingClaim exclude each other: remove one of them" -}}
{{- end -}}
{{- if and (eq (include "penstock.analytics.hasPods" .) "true") (not $output.url) (not $output.existingClaim) (not (has "ReadWriteMany" $output.accessModes)) -}}
{{- fail "analytics.executors: pods on several nodes write to one output: set analytics.output.url, an existingClaim with ReadWriteMany, or accessModes=[ReadWriteMany] with a storageClass that supports it" -}}
{{- end -}}
{{- with ($own.resources.limits | default dict).memory -}}
{{- $limit := include "penstock.text" . -}}
{{- $heap := include "penstock.analytics.driverMemory" $ -}}
{{- $bytes := include "penstock.bytes" (printf "%sb" (lower $heap | trimSuffix "b")) | float64 -}}
{{- if ge $bytes (include "penstock.bytes" $limit | float64) -}}
{{- fail (printf "analytics.driverMemory: %s is not less than analytics.resources.limits.memory, %s, which Python and the rest of Java also need" $heap $limit) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Fields of driver and executors for the Spark operator, whose webhook adds most of them to pods: (list $ component). */}}
{{- define "penstock.analytics.sparkPod" -}}
{{- $root := index . 0 -}}
{{- $own := $root.Values.analytics -}}
labels:
  {{- include "penstock.podLabels" (list $root (index . 1) $own.podLabels) | nindent 2 }}
{{- with include "penstock.podAnnotations" (list $root $own.podAnnotations) }}
annotations:
  {{- . | nindent 2 }}
{{- end }}
{{ include "penstock.podSecurity" $root | replace "securityContext:" "podSecurityContext:" }}
{{ include "penstock.containerSecurity" $root }}
{{- with include "penstock.placement" $own | trim }}
{{ . }}
{{- end }}
{{- with $own.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  - {name: spark-local-dir-tmp, mountPath: /tmp}
  {{- include "penstock.analytics.mounts" $root | nindent 2 }}
{{- end }}

{{- define "penstock.analytics.sparkApplication" -}}
{{- $own := .Values.analytics -}}
type: Python
pythonVersion: "3"
sparkVersion: 4.3.0
mode: cluster
image: {{ include "penstock.image" (list . $own.image) | toJson }}
imagePullPolicy: {{ $own.image.pullPolicy | toJson }}
{{- with include "penstock.pullSecrets" . | fromYaml }}
imagePullSecrets:
  {{- range .imagePullSecrets }}
  - {{ .name | toJson }}
  {{- end }}
{{- end }}
mainApplicationFile: local:///opt/penstock/analytics.py
arguments:
  {{- include "penstock.analytics.flags" . | nindent 2 }}
sparkConf:
  {{- range $setting, $value := include "penstock.analytics.conf" . | fromJson }}
  {{ $setting | toJson }}: {{ include "penstock.text" $value | toJson }}
  {{- end }}
restartPolicy: {type: Never}
timeToLiveSeconds: {{ $own.ttlSecondsAfterFinished | toJson }}
volumes:
  - name: spark-local-dir-tmp
    emptyDir: {}
  {{- include "penstock.analytics.volumes" . | nindent 2 }}
driver:
  cores: 1
  {{- range $field, $what := dict "coreRequest" "requests" "coreLimit" "limits" }}
  {{- with (get $own.resources $what | default dict).cpu }}
  {{ $field }}: {{ include "penstock.text" . | quote }}
  {{- end }}
  {{- end }}
  memory: {{ include "penstock.analytics.driverMemory" . | toJson }}
  serviceAccount: {{ include "penstock.analytics.name" . | toJson }}
  {{- include "penstock.analytics.sparkPod" (list . "analytics") | nindent 2 }}
  env:
    {{- include "penstock.analytics.env" . | trim | nindent 4 }}
executor:
  instances: {{ $own.executors.instances | toJson }}
  cores: {{ $own.executors.cores | toJson }}
  {{- range $field, $value := dict "coreRequest" $own.executors.cpuRequest "coreLimit" $own.executors.cpuLimit }}
  {{- with $value }}
  {{ $field }}: {{ include "penstock.text" . | quote }}
  {{- end }}
  {{- end }}
  memory: {{ $own.executors.memory | toJson }}
  memoryOverhead: {{ $own.executors.memoryOverhead | toJson }}
  {{- include "penstock.analytics.sparkPod" (list . "analytics-executor") | nindent 2 }}
  {{- with $own.extraEnv }}
  env:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- define "penstock.analytics.rules" }}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete, deletecollection]
{{- end }}
