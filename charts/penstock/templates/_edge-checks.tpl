{{/* Contradictions of an edge that the schema cannot detect. All take the context of _edge-settings.tpl. */}}

{{- define "penstock.edge.check" -}}
{{- $where := printf "edges.%s" .name -}}
{{- if has .name (list "operator" "redis" "console" "analytics" "analytics-executor" "test" "uninstall" "store" "roles" "monitoring" "crds") -}}
{{- fail (printf "%s: this name is used by another part of the chart" $where) -}}
{{- end -}}
{{- if hasKey .edge.ports "health" -}}
{{- fail (printf "%s.ports.health: this port name is reserved for the chart: see healthPort" $where) -}}
{{- end -}}
{{- $needed := include "penstock.edge.graceNeeded" . | int -}}
{{- if and (ne .edge.terminationGracePeriodSeconds nil) (lt (int .edge.terminationGracePeriodSeconds) $needed) -}}
{{- fail (printf "%s.terminationGracePeriodSeconds: %v is less than the %d seconds of drain: remove it, or shorten drain" $where .edge.terminationGracePeriodSeconds $needed) -}}
{{- end -}}
{{- include "penstock.edge.checkBudget" . -}}
{{- include "penstock.checkLabels" (list (printf "%s.podLabels" $where) .edge.podLabels) -}}
{{- include "penstock.checkLabels" (list (printf "%s.service.labels" $where) .edge.service.labels) -}}
{{- include "penstock.checkEnv" (list $where (include "penstock.edge.env" .)) -}}
{{- if and (eq .edge.workload "StatefulSet") (gt (len .fullname) 52) -}}
{{- fail (printf "%s: %s has more than 52 characters, too many for a StatefulSet's pods: shorten fullnameOverride or the edge's name" $where .fullname) -}}
{{- end -}}
{{- $known := .root.Files.Get "files/ports.yaml" | fromYaml -}}
{{- if not (or (hasKey $known .name) .edge.ports) -}}
{{- fail (printf "%s: there is no edge of this name; edges are: %s; an edge of your own image needs ports" $where (keys $known | sortAlpha | join ", ")) -}}
{{- end -}}
{{- if and (eq .name "ring") (ne .edge.workload "StatefulSet") (ne (toString (dig "ring" "enabled" true .edge.ports)) "false") -}}
{{- fail (printf "%s.workload: ring nodes need stable pod names, under which their unsent messages wait: use StatefulSet; without a node (ports.ring.enabled: false) Deployment is allowed" $where) -}}
{{- end -}}
{{- if and (eq .name "ring") (ne .edge.autoscaling.type "none") (ne (toString (dig "ring" "enabled" true .edge.ports)) "false") -}}
{{- fail (printf "%s.autoscaling: unsent messages of a ring node wait under its name and would be stranded when it is scaled away: set replicas; without a node (ports.ring.enabled: false) autoscaling is allowed" $where) -}}
{{- end -}}
{{- with .edge.autoscaling -}}
{{- if and (ne .type "none") (gt (int .minReplicas) (int .maxReplicas)) -}}
{{- fail (printf "%s.autoscaling: minReplicas %d is more than maxReplicas %d" $where (int .minReplicas) (int .maxReplicas)) -}}
{{- end -}}
{{- if and (eq .type "hpa") (lt (int .minReplicas) 1) -}}
{{- fail (printf "%s.autoscaling.minReplicas: the minimum of a HorizontalPodAutoscaler is 1; keda allows 0" $where) -}}
{{- end -}}
{{- if and (eq .type "hpa") (not .hpa.targetCPUUtilizationPercentage) (not .hpa.targetMemoryUtilizationPercentage) (not .hpa.metrics) -}}
{{- fail (printf "%s.autoscaling.hpa: there is no metric to scale by: set a target of CPU or memory, or metrics" $where) -}}
{{- end -}}
{{- if and (eq .type "keda") .keda.serverAddress (not $.root.Values.operator.enabled) (contains "penstock_operator_queue_depth{namespace=\"{{ .namespace }}\"}" .keda.query) -}}
{{- fail (printf "%s.autoscaling.keda.query: it uses the operator's metrics, and the operator is off: enable it, or set another query" $where) -}}
{{- end -}}
{{- if and (eq .type "keda") (not .keda.serverAddress) (not .keda.triggers) -}}
{{- fail (printf "%s.autoscaling.keda: serverAddress is required: set the URL of Prometheus, or triggers of your own" $where) -}}
{{- end -}}
{{- end -}}
{{- if and .edge.tls.clientCA (not .edge.tls.secretName) -}}
{{- fail (printf "%s.tls: clientCA requires secretName, a Secret with ca.crt" $where) -}}
{{- end -}}
{{- if and .edge.helmTest (not (hasKey .edge.ports .edge.helmTest)) -}}
{{- fail (printf "%s.helmTest: there is no port %q" $where .edge.helmTest) -}}
{{- end -}}
{{- with .root.Values -}}
{{- if and $.edge.hostNetwork .redis.enabled .networkPolicy.enabled (not .networkPolicy.redisFrom) -}}
{{- fail (printf "%s.hostNetwork: the chart's own store admits only pods, but such a pod connects from its node's address: set networkPolicy.redisFrom to ipBlocks of the nodes" $where) -}}
{{- end -}}
{{- end -}}
{{- include "penstock.edge.checkService" . -}}
{{- include "penstock.edge.checkPorts" . -}}
{{- include "penstock.edge.checkPlaces" . -}}
{{- include "penstock.edge.checkSettings" . -}}
{{- include "penstock.edge.checkTls" . -}}
{{- end }}

{{/* A budget must always allow an eviction: the API server rounds percentages of pods up. */}}
{{- define "penstock.edge.checkBudget" -}}
{{- $where := printf "%s.pdb" (.where | default (printf "edges.%s" .name)) -}}
{{- $pods := ternary .edge.replicas (max 1 (int .edge.autoscaling.minReplicas)) (eq .edge.autoscaling.type "none") | int -}}
{{- with .edge.pdb -}}
{{- if and .enabled (ne .minAvailable nil) (ne .maxUnavailable nil) -}}
{{- fail (printf "%s: minAvailable and maxUnavailable exclude each other: remove one of them" $where) -}}
{{- end -}}
{{- if and .enabled $pods -}}
{{- if ne .minAvailable nil -}}
{{- $said := toString .minAvailable -}}
{{- $needed := int $said -}}
{{- if hasSuffix "%" $said }}{{ $needed = div (add (mul $pods (trimSuffix "%" $said | int)) 99) 100 }}{{ end -}}
{{- if ge (int $needed) $pods -}}
{{- fail (printf "%s.minAvailable: %s of %d pods: no pod could be evicted, so that nodes could not be drained: reduce it, or set pdb.enabled=false" $where $said $pods) -}}
{{- end -}}
{{- else if has (toString .maxUnavailable) (list "0" "0%") -}}
{{- fail (printf "%s.maxUnavailable: no pod could be evicted, so that nodes could not be drained: allow one, or set pdb.enabled=false" $where) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A Service must be valid and lead to its ports. */}}
{{- define "penstock.edge.checkService" -}}
{{- $where := printf "edges.%s" .name -}}
{{- $headless := eq .edge.service.clusterIP "None" -}}
{{- if and $headless (ne .edge.service.type "ClusterIP") -}}
{{- fail (printf "%s.service.clusterIP: None requires type ClusterIP: remove one of the two" $where) -}}
{{- end -}}
{{- if and .edge.service.externalTrafficPolicy (eq .edge.service.type "ClusterIP") -}}
{{- fail (printf "%s.service.externalTrafficPolicy: it does not apply to a Service of type ClusterIP: remove it, or set service.type" $where) -}}
{{- end -}}
{{- if and (eq (len (.edge.service.ipFamilies | default list)) 2) (not (has .edge.service.ipFamilyPolicy (list "PreferDualStack" "RequireDualStack"))) -}}
{{- fail (printf "%s.service.ipFamilies: two families require ipFamilyPolicy PreferDualStack or RequireDualStack" $where) -}}
{{- end -}}
{{- range list "loadBalancerIP" "loadBalancerClass" "loadBalancerSourceRanges" -}}
{{- if and (get $.edge.service .) (ne $.edge.service.type "LoadBalancer") -}}
{{- fail (printf "%s.service.%s: it only applies to a Service of type LoadBalancer: remove it, or set service.type" $where .) -}}
{{- end -}}
{{- end -}}
{{- $exposed := list -}}
{{- range $port, $its := .edge.ports -}}
{{- if include "penstock.edge.isExposed" (list $.edge $its) -}}
{{- $exposed = append $exposed $port -}}
{{- if and $headless (ne (int ($its.servicePort | default $its.port)) (int $its.port)) -}}
{{- fail (printf "%s.ports.%s.servicePort: a headless Service only has the ports of its pods: remove it" $where $port) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (not $exposed) (ne .edge.service.type "ClusterIP") -}}
{{- fail (printf "%s.ports: none is exposed, but a Service of type %s needs one: set service.type=ClusterIP" $where .edge.service.type) -}}
{{- end -}}
{{- range .edge.portRanges -}}
{{- if and .endPort (lt (int .endPort) (int .port)) -}}
{{- fail (printf "%s.portRanges: endPort %d is less than port %d" $where (int .endPort) (int .port)) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Entries of `ports` must match what the process opens. */}}
{{- define "penstock.edge.checkPorts" -}}
{{- $ports := .edge.ports -}}{{- $where := printf "edges.%s.ports" .name -}}
{{- range get (.root.Files.Get "files/ports.yaml" | fromYaml) .name | default list -}}
{{- if not (hasKey $ports .) -}}
{{- fail (printf "%s.%s: the port would stay open without its entry: set enabled: false" $where .) -}}
{{- end -}}
{{- end -}}
{{- range $port, $its := $ports -}}
{{- with $its.beside -}}
{{- if not (hasKey $ports .) -}}{{- fail (printf "%s.%s.beside: there is no port %q" $where $port .) -}}{{- end -}}
{{- if and (eq (toString $its.enabled) "false") (ne (toString (get $ports .).enabled) "false") -}}
{{- fail (printf "%s.%s: it is open while %s is open: close that one" $where $port .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not .edge.peersService -}}
{{- range $variable, $value := .edge.env -}}
{{- if contains "$(PEERS_SERVICE)" (toString $value) -}}
{{- fail (printf "edges.%s.peersService: env.%s needs it: set that variable to another value" $.name $variable) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Settings that the chart sets itself must not be set elsewhere, since they would be overridden. */}}
{{- define "penstock.edge.checkSettings" -}}
{{- $settings := .edge.settings -}}{{- $where := printf "edges.%s" .name -}}
{{- range $port, $its := .edge.ports -}}
{{- $open := ne (toString $its.enabled) "false" -}}
{{- $listener := printf "listeners.%s" ($its.listener | default "") -}}
{{- $said := dict ($its.setting | default "") $its.port (printf "%s.port" $listener) $its.port ($its.switch | default "") $open -}}
{{- range $path, $value := $said -}}
{{- $told := include "penstock.at" (list $settings $path) -}}
{{- if and (ne $told "null") (ne $told (toJson $value)) -}}
{{- fail (printf "%s.settings.%s: %s.ports.%s sets %s: set it only there" $where $path $where $port (toJson $value)) -}}
{{- end -}}
{{- end -}}
{{- if and $open (eq (include "penstock.at" (list $settings $listener)) "false") -}}
{{- fail (printf "%s.settings.%s: %s.ports.%s opens it: set enabled: false there" $where $listener $where $port) -}}
{{- end -}}
{{- $host := include "penstock.at" (list $settings (printf "%s.host" $listener)) -}}
{{- if and $open (ne $host "null") (ne $host (toJson $.edge.bindAddress)) -}}
{{- fail (printf "%s.settings.%s.host: the chart binds all listeners to bindAddress, %s: remove it, or set %s.bindAddress" $where $listener $.edge.bindAddress $where) -}}
{{- end -}}
{{- end -}}
{{- if .edge.tls.secretName -}}
{{- $files := include "penstock.edge.tlsFiles" . | fromJson -}}
{{- range $listener := .edge.tls.listeners | default (keys ($settings.listeners | default dict)) -}}
{{- $its := get ($settings.listeners | default dict) $listener -}}
{{- if and (kindIs "map" $its) (hasKey (ternary $its dict (kindIs "map" $its)) "tls") -}}
{{- if not (kindIs "map" $its.tls) -}}
{{- fail (printf "%s.settings.listeners.%s.tls: %s.tls.secretName sets its certificate: remove it, or list the other listeners in %s.tls.listeners" $where $listener $where $where) -}}
{{- end -}}
{{- range $file, $path := $files -}}
{{- if and (hasKey $its.tls $file) (ne (toString (get $its.tls $file)) $path) -}}
{{- fail (printf "%s.settings.listeners.%s.tls.%s: %s.tls sets %s: remove one of the two, or list the other listeners in %s.tls.listeners" $where $listener $file $where $path $where) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Port numbers in the pod and in the Service, and listeners, must be unique. */}}
{{- define "penstock.edge.checkPlaces" -}}
{{- $where := printf "edges.%s.ports" .name -}}
{{- $taken := dict (printf "TCP %d" (int .edge.healthPort)) "healthPort" -}}
{{- if eq .edge.service.type "ClusterIP" }}{{ $_ := set $taken (printf "TCP %d of the Service" (int .edge.healthPort)) "healthPort" }}{{ end -}}
{{- range $port, $its := .edge.ports -}}
{{- if and $its.nodePort (eq $.edge.service.type "ClusterIP") -}}
{{- fail (printf "%s.%s.nodePort: a Service of type ClusterIP has no node port: set edges.%s.service.type" $where $port $.name) -}}
{{- end -}}
{{- if ne (toString $its.enabled) "false" -}}
{{- $protocol := $its.protocol | default "TCP" -}}
{{- $places := list (printf "%s %d" $protocol (int $its.port)) -}}
{{- if include "penstock.edge.isExposed" (list $.edge $its) }}{{ $places = append $places (printf "%s %d of the Service" $protocol (int ($its.servicePort | default $its.port))) }}{{ end -}}
{{- with $its.listener }}{{ $places = append $places (printf "listener %s" .) }}{{ end -}}
{{- range $places -}}
{{- if hasKey $taken . -}}
{{- fail (printf "%s.%s: %s is also used by %s: choose another one" $where $port . (get $taken .)) -}}
{{- end -}}
{{- $_ := set $taken . $port -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A certificate for a closed listener would leave clients without TLS. */}}
{{- define "penstock.edge.checkTls" -}}
{{- $where := printf "edges.%s.tls" .name -}}
{{- if and .edge.tls.listeners (not .edge.tls.secretName) -}}
{{- fail (printf "%s: listeners requires secretName, a Secret with tls.crt and tls.key" $where) -}}
{{- end -}}
{{- $settings := include "penstock.edge.settings" . | fromJson -}}
{{- $open := list -}}{{- $secured := list -}}
{{- range $listener, $its := $settings.listeners -}}
{{- if kindIs "map" $its -}}
{{- $open = append $open $listener -}}
{{- if $its.tls }}{{ $secured = append $secured $listener }}{{ end -}}
{{- end -}}
{{- end -}}
{{- range .edge.ports -}}
{{- if and .dial (has .listener $secured) (eq (include "penstock.at" (list $settings .dial)) "null") -}}
{{- fail (printf "%s: pods would dial the listener %q without TLS: list other listeners, or set settings.%s" $where .listener .dial) -}}
{{- end -}}
{{- end -}}
{{- range .edge.tls.listeners -}}
{{- if not (has . $open) -}}
{{- fail (printf "%s.listeners: there is no listener %q; listeners are: %s" $where . (join ", " $open)) -}}
{{- end -}}
{{- end -}}
{{- end }}
