{{/* What Pod Security calls restricted, for a pod: the id of its user and group. */}}
{{- define "partilha.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{/* The same, for a container. */}}
{{- define "partilha.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{/* What all pods have: nothing of the cluster's own, and a place where to run. */}}
{{- define "partilha.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The variables that name the files of secrets: a list of their names. */}}
{{- define "partilha.secretFiles" -}}
{{- range . }}
- { name: {{ . }}_FILE, value: /run/secrets/partilha/{{ . }} }
{{- end }}
{{- end }}

{{/* Where a container finds its secrets and the certificate authority: (dict "root" $). */}}
{{- define "partilha.mounts" -}}
- { name: secrets, mountPath: /run/secrets/partilha, readOnly: true }
{{- if .root.Values.certificateAuthority.configMap }}
- { name: ca, mountPath: /etc/partilha/ca, readOnly: true }
{{- end }}
{{- end }}

{{/* The volumes of these: (dict "root" $ "service" NAME "secrets" LIST). */}}
{{- define "partilha.volumes" -}}
- name: secrets
  secret:
    secretName: {{ include "partilha.secret" . | quote }}
    defaultMode: 0440
    items:
      {{- range .secrets }}
      - { key: {{ . }}, path: {{ . }} }
      {{- end }}
{{- with .root.Values.certificateAuthority }}{{ if .configMap }}
- name: ca
  configMap:
    name: {{ .configMap | quote }}
    items: [{ key: {{ .key | quote }}, path: ca.crt }]
{{- end }}{{ end }}
{{- end }}
