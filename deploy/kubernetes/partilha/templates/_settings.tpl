{{/* The services that have a database. */}}
{{- define "partilha.stores" -}}
[sales, commissions, goals, webhooks]
{{- end }}

{{/* All programs. */}}
{{- define "partilha.programs" -}}
[sales, commissions, goals, webhooks, front]
{{- end }}

{{/* The secrets that one service reads, by the names of their variables. */}}
{{- define "partilha.secrets" -}}
{{- $own := dict "sales" "ADMIN_TOKEN" "commissions" "COMMISSIONS_SECRET_KEY" "webhooks" "WEBHOOKS_SECRET_KEY" -}}
{{- $all := list "DATABASE_URL" "NATS_URL" -}}
{{- with index $own . }}{{ $all = append $all . }}{{ end -}}
{{ toYaml $all }}
{{- end }}

{{/* The variables of one program that are no secret: (dict "root" $ "service" NAME). */}}
{{- define "partilha.settings" -}}
{{- $values := .root.Values -}}
{{- $own := (index $values.services .service).settings -}}
{{- $name := include "partilha.name" .root -}}
{{- $all := dict "ADDR" ":8080" -}}
{{- if eq .service "front" -}}
{{- $all = merge $all $own (pick $values.settings "LOG_LEVEL") -}}
{{- range include "partilha.stores" . | fromYamlArray -}}
{{- $_ := set $all (printf "%s_URL" (upper .)) (printf "http://%s-%s:8080" $name .) -}}
{{- end -}}
{{- else -}}
{{- $_ := set $all "MIGRATE" (ternary "on" "off" $values.trial.enabled) -}}
{{- with $values.tracing.endpoint }}{{ $_ := set $all "OTEL_EXPORTER_OTLP_ENDPOINT" . }}{{ end -}}
{{- if $values.certificateAuthority.configMap }}{{ $_ := set $all "SSL_CERT_DIR" "/etc/partilha/ca" }}{{ end -}}
{{- $all = merge $all $own $values.settings -}}
{{- end -}}
{{- range $variable, $value := $all }}
{{ $variable }}: {{ include "partilha.text" $value | quote }}
{{- end }}
{{- end }}

{{/* A value as the text of a variable. A number of a values file is a float here. */}}
{{- define "partilha.text" -}}
{{- if kindIs "float64" . }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end }}

{{/* Whether Jobs migrate the databases; "" for no. */}}
{{- define "partilha.migrates" -}}
{{- if not (or .Values.trial.enabled (eq .Values.restore "stop")) }}yes{{ end -}}
{{- end }}

{{/* What a restore runs, in its order. */}}
{{- define "partilha.restoreSteps" -}}
- { service: sales, component: sales-catch-up, args: [catch-up] }
- { service: goals, component: goals-catch-up, args: [catch-up] }
- { service: commissions, component: commissions-catch-up, args: [catch-up] }
- { service: webhooks, component: webhooks-restored, args: [restored, now] }
- { service: webhooks, component: webhooks-catch-up, args: [catch-up] }
{{- end }}
