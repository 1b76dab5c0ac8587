{{/* The longest time between two runs of a schedule, in seconds; minutes are ignored. A schedule that skips days counts as one day:
this exceeds the value of every schedule that runs daily. The argument is `.Values.analytics.schedule`, already validated by the schema. */}}
{{- define "penstock.schedule.pause" -}}
{{- $named := dict "@hourly" 3600 "@daily" 86400 "@midnight" 86400 "@weekly" 604800 "@monthly" 2678400 "@yearly" 31622400 "@annually" 31622400 -}}
{{- $fields := splitList " " (regexReplaceAll "[ \\t]+" . " ") -}}
{{- if hasKey $named . -}}
{{- get $named . -}}
{{- else if hasPrefix "@every " . -}}
{{- $seconds := 0.0 -}}
{{- range regexFindAll "[0-9.]+[hms]" (index $fields 1) -1 -}}
{{- $seconds = addf $seconds (mulf (float64 (trimAll "hms" .)) (get (dict "h" 3600 "m" 60 "s" 1) (regexFind "[hms]" .))) -}}
{{- end -}}
{{- int $seconds -}}
{{- else if regexMatch "[^*? ]" (join " " (slice $fields 2)) -}}
86400
{{- else -}}
{{- $hours := dict -}}
{{- range splitList "," (index $fields 1) -}}
{{- $parts := splitList "/" . -}}
{{- $ends := splitList "-" (index $parts 0 | replace "*" "0-23" | replace "?" "0-23") -}}
{{- $last := ternary 23 (int (last $ends)) (and (gt (len $parts) 1) (eq (len $ends) 1)) -}}
{{- range untilStep (int (first $ends)) (int (add1 $last)) (ternary (int (last $parts)) 1 (gt (len $parts) 1)) -}}
{{- $_ := set $hours (toString .) true -}}
{{- end -}}
{{- end -}}
{{- $most := 0 -}}{{- $since := 0 -}}
{{- range until 48 -}}
{{- $since = add1 $since -}}
{{- if hasKey $hours (toString (mod . 24)) -}}
{{- if ge . 24 -}}{{- $most = max $most $since -}}{{- end -}}
{{- $since = 0 -}}
{{- end -}}
{{- end -}}
{{- mul $most 3600 -}}
{{- end -}}
{{- end -}}
