{{/* CPU and memory of a container: (list path resources). The API server would refuse the pods after all other objects were created. */}}
{{- define "penstock.resources" -}}
{{- $where := index . 0 -}}{{- $its := index . 1 | default dict -}}
{{- $limits := $its.limits | default dict -}}
{{- range $what, $asked := $its.requests | default dict -}}
{{- $limit := get $limits $what | default "" -}}
{{- if and (ne (toString $asked) "") (not (kindIs "invalid" $asked)) (ne (toString $limit) "") -}}
{{- $texts := list (include "penstock.text" $asked) (include "penstock.text" $limit) -}}
{{- if gt (include "penstock.quantity" (first $texts) | float64) (include "penstock.quantity" (last $texts) | float64) -}}
{{- fail (printf "%s: the request of %s %s exceeds the limit of %s: reduce requests.%s or raise limits.%s" $where (first $texts) $what (last $texts) $what $what) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "penstock.said" $its -}}
{{- end }}

{{/* A number in the notation of the Kubernetes API: 500m, 1.5, 64Mi, 2e3. */}}
{{- define "penstock.quantity" -}}
{{- $factors := dict "n" 1e-9 "u" 1e-6 "m" 1e-3 "" 1.0 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "P" 1e15 "E" 1e18 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 "Pi" 1125899906842624.0 "Ei" 1152921504606846976.0 -}}
{{- $number := regexFind "^[0-9.]+([eE][+-]?[0-9]+)?" . -}}
{{- mulf (float64 $number) (get $factors (trimPrefix $number .) | default 1.0) -}}
{{- end }}
