{{/* The one volume of a server of a trial: (dict "root" $ "storage" SIZE). */}}
{{- define "partilha.trialClaim" -}}
accessModes: [ReadWriteOnce]
{{- with .root.Values.trial.storageClassName }}
storageClassName: {{ . | quote }}
{{- end }}
resources: { requests: { storage: {{ .storage | quote }} } }
{{- end }}

{{/* Only the services reach it, and it reaches nobody: (dict "root" $ "component" NAME "port" PORT). */}}
{{- define "partilha.trialNetwork" -}}
{{- if .root.Values.networkPolicy.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "partilha.name" .root }}-{{ .component }}
  labels: {{- include "partilha.labels" . | nindent 4 }}
spec:
  podSelector: { matchLabels: { {{- include "partilha.selector" . | replace "\n" ", " -}} } }
  policyTypes: [Ingress, Egress]
  ingress:
    - ports: [{ port: {{ .port }}, protocol: TCP }]
      from:
        - podSelector:
            matchLabels: { app.kubernetes.io/name: partilha, app.kubernetes.io/instance: {{ .root.Release.Name | quote }} }
            matchExpressions: [{ key: app.kubernetes.io/component, operator: In, values: {{ include "partilha.stores" . }} }]
{{- end }}
{{- end }}
