{{/* Rules of egress, each an element of a list. */}}

{{- define "partilha.toDNS" -}}
- ports: [{ port: 53, protocol: UDP }, { port: 53, protocol: TCP }]
  {{- with .Values.networkPolicy.dns.to }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* To PostgreSQL or NATS, the trial's own or what is outside: (dict "root" $ "server" NAME). */}}
{{- define "partilha.toServer" -}}
{{- $given := index .root.Values.networkPolicy .server -}}
{{- if .root.Values.trial.enabled -}}
- ports: [{ port: {{ ternary 5432 4222 (eq .server "postgres") }}, protocol: TCP }]
  to:
    - podSelector: { matchLabels: { {{- include "partilha.selector" (dict "root" .root "component" .server) | replace "\n" ", " -}} } }
{{- else -}}
- ports:
    {{- range $given.ports }}
    - { port: {{ . }}, protocol: TCP }
    {{- end }}
  {{- with $given.to }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
{{- end }}

{{- define "partilha.toCollector" -}}
{{- $url := urlParse .Values.tracing.endpoint -}}
{{- $port := regexFind "[0-9]+$" (regexFind ":[0-9]+$" $url.host) | default (ternary "443" "80" (eq $url.scheme "https")) -}}
- ports: [{ port: {{ $port }}, protocol: TCP }]
  {{- with .Values.networkPolicy.traces.to }}
  to: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* To every public address at the ports of webhooks, and to what their settings allow
besides. The networks that are left out are those that the service itself refuses
(services/webhooks/dial.go): (dict "root" $ "service" "webhooks"). */}}
{{- define "partilha.toWorld" -}}
{{- $settings := include "partilha.settings" . | fromYaml -}}
{{- $usual := ternary "443,8443,80" "443,8443" (eq (get $settings "WEBHOOKS_ALLOW_HTTP") "true") -}}
{{- $ports := get $settings "WEBHOOKS_PORTS" | default $usual -}}
- to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except:
          - 0.0.0.0/8
          - 10.0.0.0/8
          - 100.64.0.0/10
          - 127.0.0.0/8
          - 169.254.0.0/16
          - 172.16.0.0/12
          - 192.0.0.0/24
          - 192.0.2.0/24
          - 192.31.196.0/24
          - 192.52.193.0/24
          - 192.88.99.0/24
          - 192.168.0.0/16
          - 192.175.48.0/24
          - 198.18.0.0/15
          - 198.51.100.0/24
          - 203.0.113.0/24
          - 224.0.0.0/4
          - 240.0.0.0/4
          - 168.63.129.16/32
    - ipBlock:
        cidr: 2000::/3
        except:
          - 2001::/23
          - 2001:db8::/32
          - 2002::/16
          - 3fff::/20
          - 2620:4f:8000::/48
    {{- with get $settings "WEBHOOKS_ALLOW_NETS" }}
    {{- range splitList "," . }}
    - ipBlock: { cidr: {{ trim . | quote }} }
    {{- end }}
    {{- end }}
  {{- if ne $ports "*" }}
  ports:
    {{- range splitList "," $ports }}
    - { port: {{ trim . }}, protocol: TCP }
    {{- end }}
  {{- end }}
{{- end }}
