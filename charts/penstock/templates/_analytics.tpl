{{/* The analytics job: a pod with Spark's driver, which runs executors as threads unless executors are enabled. */}}

{{- define "penstock.analytics.name" -}}
{{ include "penstock.fullname" . }}-analytics
{{- end }}

{{/* The job's output: a URL, or a folder of the claim, which is mounted at /output. */}}
{{- define "penstock.analytics.output" -}}
{{ .Values.analytics.output.url | default (printf "/output/%s" .Values.analytics.output.folder) | trimSuffix "/" }}
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
{{- if eq .Values.analytics.mode "cronjob" }}{{ include "penstock.overlay" (list $conf (include "penstock.analytics.clientConf" . | fromJson)) }}{{ end -}}
{{- include "penstock.overlay" (list $conf (include "penstock.analytics.jobConf" . | fromJson)) -}}
{{- toJson $conf -}}
{{- end }}

{{/* Settings that replace the job's own, as JSON: the job overrides those of spark-submit, so it gets these as flags. */}}
{{- define "penstock.analytics.jobConf" -}}
{{- $own := .Values.analytics -}}
{{- $conf := dict -}}
{{- if $own.metrics.enabled -}}
{{- include "penstock.overlay" (list $conf (dict
  "spark.ui.enabled" "true"
  "spark.ui.port" "4040"
  "spark.ui.killEnabled" "false"
  "spark.ui.prometheus.enabled" "true"
  "spark.metrics.namespace" "penstock_analytics"
  "spark.metrics.conf.*.sink.prometheusServlet.class" "org.apache.spark.metrics.sink.PrometheusServlet"
  "spark.metrics.conf.*.sink.prometheusServlet.path" "/metrics/prometheus"
  "spark.metrics.conf.*.source.jvm.class" "org.apache.spark.metrics.source.JvmSource"
  "spark.sql.streaming.metricsEnabled" "true")) -}}
{{- end -}}
{{- if $own.eventLog -}}
{{- $output := include "penstock.analytics.output" . -}}
{{- include "penstock.overlay" (list $conf (dict
  "spark.eventLog.enabled" "true"
  "spark.eventLog.dir" (printf "%s%s/events" (ternary "" "file://" (contains "://" $output)) $output))) -}}
{{- end -}}
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
  "spark.kubernetes.executor.podTemplateContainerName" "spark-kubernetes-executor"
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

{{/* Arguments of the job. `$` in values is escaped, since Kubernetes would expand it as a variable. With the Spark operator, Spark
itself says which master to use. */}}
{{- define "penstock.analytics.arguments" -}}
{{- $own := .Values.analytics -}}
{{- $job := $own.job -}}
{{- $isCronJob := eq $own.mode "cronjob" -}}
- run
- {{ printf "--output=%s" (include "penstock.analytics.output" .) | toJson }}
- --run-id={{ ternary "$(RUN_NAME)-$(RUN_UID)" "$(RUN_NAME)" $isCronJob }}
{{- if $isCronJob }}
- --master={{ ternary "k8s://https://kubernetes.default.svc" "local[*]" $own.executors.enabled }}
{{- end }}
- --driver-memory={{ include "penstock.analytics.driverMemory" . }}
- {{ printf "--bodies=%s" (include "penstock.text" $job.bodies) | toJson }}
{{- range $job.redact }}
- {{ printf "--redact=%s" . | replace "$" "$$" | toJson }}
{{- end }}
- --retention-days={{ toJson $job.retentionDays }}
- --week-days={{ toJson $job.weekDays }}
- --top={{ toJson $job.top }}
- --objective={{ toJson $job.objective }}
- --report-hours={{ toJson $job.reportHours }}
- --clock-slack={{ toJson $job.clockSlackSeconds }}
- --maintenance-s={{ toJson $job.maintenanceSeconds }}
- --patience-s={{ toJson $job.patienceSeconds }}
- --{{ if not $job.failOnDataLoss }}no-{{ end }}fail-on-data-loss
{{- range $setting, $value := include (ternary "penstock.analytics.conf" "penstock.analytics.jobConf" $isCronJob) . | fromJson }}
- {{ printf "--conf=%s=%s" $setting (include "penstock.text" $value) | toJson }}
{{- end }}
{{- range $own.arguments }}
- {{ . | replace "$" "$$" | toJson }}
{{- end }}
{{- end }}

{{/* The driver's pod: of the CronJob, or the template that the Spark operator completes with image, arguments and resources. */}}
{{- define "penstock.analytics.pod" -}}
{{- $own := .Values.analytics -}}
{{- $isCronJob := eq $own.mode "cronjob" -}}
{{- $tmp := ternary "tmp" "spark-local-dir-tmp" $isCronJob -}}{{/* Spark uses volumes of the second name for its local files */}}
{{- if $isCronJob }}
restartPolicy: Never
{{- else }}
activeDeadlineSeconds: {{ $own.activeDeadlineSeconds | toJson }}
{{- end }}
terminationGracePeriodSeconds: 30
serviceAccountName: {{ include "penstock.analytics.name" . | toJson }}
automountServiceAccountToken: {{ include "penstock.analytics.hasPods" . }}
enableServiceLinks: false
{{- with include "penstock.pullSecrets" . | trim }}
{{ . }}
{{- end }}
{{ include "penstock.podSecurity" . }}
{{- with include "penstock.placement" $own | trim }}
{{ . }}
{{- end }}
containers:
  - name: {{ ternary "driver" "spark-kubernetes-driver" $isCronJob }}
    {{- if $isCronJob }}
    image: {{ include "penstock.image" (list . $own.image) | toJson }}
    imagePullPolicy: {{ $own.image.pullPolicy | toJson }}
    args:
      {{- include "penstock.analytics.arguments" . | nindent 6 }}
    {{- if $own.metrics.enabled }}
    ports:
      - {name: spark-ui, containerPort: 4040}
    {{- end }}
    resources:
      {{- include "penstock.resources" (list "analytics.resources" $own.resources) | nindent 6 }}
    {{- end }}
    {{- include "penstock.containerSecurity" . | nindent 4 }}
    env:
      {{- include "penstock.analytics.env" . | trim | nindent 6 }}
    {{- with $own.extraEnvFrom }}
    envFrom:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    volumeMounts:
      - {name: {{ $tmp }}, mountPath: /tmp}
      {{- include "penstock.analytics.mounts" . | nindent 6 }}
      {{- if and $isCronJob $own.executors.enabled }}
      - {name: executor, mountPath: /etc/penstock/executor.yaml, subPath: executor.yaml, readOnly: true}
      {{- end }}
volumes:
  - name: {{ $tmp }}
    emptyDir: {}
  {{- include "penstock.analytics.volumes" . | nindent 2 }}
  {{- if and $isCronJob $own.executors.enabled }}
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
      command: [python, -c, "import tempfile; tempfile.TemporaryFile(dir='/output').close()"]
      {{- include "penstock.containerSecurity" . | nindent 6 }}
      resources:
        {{- include "penstock.resources" (list "analytics.output.prepare.resources" $own.output.prepare.resources) | nindent 8 }}
      volumeMounts:
        - {name: tmp, mountPath: /tmp}
        - {name: output, mountPath: /output}
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
- name: RUN_NAME
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/job-name']"}}
- name: RUN_UID
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['batch.kubernetes.io/controller-uid']"}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- {name: SPARK_LOCAL_DIRS, value: /tmp}
{{- else }}
- name: RUN_NAME
  valueFrom: {fieldRef: {fieldPath: "metadata.labels['sparkoperator.k8s.io/app-name']"}}
{{- end }}
{{- include "penstock.storeEnv" (list . "edge") }}
{{- with .Values.analytics.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Volumes of driver and executors: the output has the same path in both. */}}
{{- define "penstock.analytics.mounts" -}}
{{- $own := .Values.analytics -}}
{{- if not $own.output.url }}
- {name: output, mountPath: /output}
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
    - name: spark-kubernetes-executor
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
{{- range $value, $why := dict "lateHours" "late records change their hours however late they are" "lockSeconds" "commits of Delta Lake replace the lock" -}}
{{- if hasKey ($own.job | default dict) $value -}}
{{- fail (printf "analytics.job.%s: this value no longer exists, since %s: remove it" $value $why) -}}
{{- end -}}
{{- end -}}
{{- range $own.arguments -}}
{{- if regexMatch "^--continuous(=|$)" . -}}
{{- fail "analytics.arguments: a run with --continuous never ends: remove it, and set analytics.schedule, such as */10 * * * *" -}}
{{- end -}}
{{- end -}}
{{- if eq $own.mode "scheduledSparkApplication" -}}
{{- $name := include "penstock.analytics.name" . -}}
{{- if or (gt (len $name) 43) (not (regexMatch "^[a-z]" $name)) -}}
{{- fail (printf "analytics.mode: the Spark operator adds 20 characters to %s, and a name may have 63 and begins with a letter: set fullnameOverride, with at most 33 characters" $name) -}}
{{- end -}}
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

{{/* A SparkApplication. Pod templates, which the operator knows since 2.1, have all that the CronJob's pods have. It also copies its
own labels to both pods, over those of the templates, so the labels of the components are fields as well. A retry has the name of the
first attempt and continues its run. */}}
{{- define "penstock.analytics.sparkApplication" -}}
{{- $own := .Values.analytics -}}
type: Python
pythonVersion: "3"
sparkVersion: 4.2.1
mode: cluster
image: {{ include "penstock.image" (list . $own.image) | toJson }}
imagePullPolicy: {{ $own.image.pullPolicy | toJson }}
mainApplicationFile: local:///opt/penstock/analytics.py
arguments:
  {{- include "penstock.analytics.arguments" . | nindent 2 }}
sparkConf:
  {{- range $setting, $value := include "penstock.analytics.conf" . | fromJson }}
  {{ $setting | toJson }}: {{ include "penstock.text" $value | toJson }}
  {{- end }}
restartPolicy:
  {{- if $own.backoffLimit }}
  type: OnFailure
  onFailureRetries: {{ $own.backoffLimit | toJson }}
  onFailureRetryInterval: 10
  onSubmissionFailureRetries: {{ $own.backoffLimit | toJson }}
  onSubmissionFailureRetryInterval: 10
  {{- else }}
  type: Never
  {{- end }}
timeToLiveSeconds: {{ $own.ttlSecondsAfterFinished | toJson }}
driver:
  cores: 1
  {{- range $field, $what := dict "coreRequest" "requests" "coreLimit" "limits" }}
  {{- with (get $own.resources $what | default dict).cpu }}
  {{ $field }}: {{ include "penstock.text" . | quote }}
  {{- end }}
  {{- end }}
  memory: {{ include "penstock.analytics.driverMemory" . | toJson }}
  {{- with include "penstock.analytics.driverOverhead" . }}
  memoryOverhead: {{ . }}
  {{- end }}
  serviceAccount: {{ include "penstock.analytics.name" . | toJson }}
  labels:
    {{- include "penstock.podLabels" (list . "analytics" $own.podLabels) | nindent 4 }}
  template:
    metadata:
      labels:
        {{- include "penstock.podLabels" (list . "analytics" $own.podLabels) | nindent 8 }}
      {{- with include "penstock.podAnnotations" (list . $own.podAnnotations) }}
      annotations:
        {{- . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "penstock.analytics.pod" . | trim | nindent 6 }}
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
  labels:
    {{- include "penstock.podLabels" (list . "analytics-executor" $own.podLabels) | nindent 4 }}
  template:
    {{- include "penstock.analytics.executor" . | nindent 4 }}
{{- end }}

{{/* What the driver's limit leaves beside the heap: Spark makes the pod's memory of the two. Empty without a limit. */}}
{{- define "penstock.analytics.driverOverhead" -}}
{{- with (.Values.analytics.resources.limits | default dict).memory -}}
{{- $heap := include "penstock.bytes" (printf "%sb" (include "penstock.analytics.driverMemory" $ | lower | trimSuffix "b")) | float64 -}}
{{ divf (subf (include "penstock.bytes" (include "penstock.text" .) | float64) $heap) 1048576.0 | floor | int64 }}m
{{- end -}}
{{- end }}

{{- define "penstock.analytics.rules" }}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete, deletecollection]
{{- end }}
