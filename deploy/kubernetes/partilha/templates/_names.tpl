{{/* Every object's name begins with this. */}}
{{- define "partilha.name" -}}
{{- if contains "partilha" .Release.Name -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-partilha" (.Release.Name | trunc 31 | trimSuffix "-") }}
{{- end -}}
{{- end }}

{{/* What selects the pods of one component: (dict "root" $ "component" NAME). */}}
{{- define "partilha.selector" -}}
app.kubernetes.io/name: partilha
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* What every object is labelled with: (dict "root" $ "component" NAME). */}}
{{- define "partilha.labels" -}}
{{ include "partilha.selector" . }}
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The image of one program: (dict "root" $ "service" NAME). */}}
{{- define "partilha.image" -}}
{{ printf "%s-%s:%s" .root.Values.image.repository .service (.root.Values.image.tag | default .root.Chart.AppVersion) }}
{{- end }}

{{/* The Secret of one service: (dict "root" $ "service" NAME). */}}
{{- define "partilha.secret" -}}
{{- $given := (index .root.Values.services .service).secret -}}
{{- if and $given .root.Values.trial.enabled -}}
{{- fail (printf "services.%s.secret is %q, but a trial makes the Secrets itself: set one of the two" .service $given) -}}
{{- end -}}
{{ $given | default (printf "%s-%s" (include "partilha.name" .root) .service) }}
{{- end }}
