package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var services = []string{"sales", "commissions", "goals", "webhooks", "front"}

// settled are variables that docker-compose.yml leaves no choice of, and why.
var settled = map[string]string{
	"DATABASE_URL":                       "made of the password in .env",
	"NATS_URL":                           "made of the password in .env",
	"NATS_REPLICAS":                      "there is one NATS server",
	"MIGRATE":                            "on: containers of a new version start by themselves",
	"ADDR":                               "of the image: the edge finds it there",
	"TRUSTED_PROXIES":                    "the edge, which is in INSIDE_SUBNET",
	"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "OTEL_EXPORTER_OTLP_ENDPOINT says the same",
	"GOGC":                               "follows the container's memory",
	"GOMEMLIMIT":                         "follows the container's memory",
	"SALES_URL":                          "the default is the name of the container",
	"COMMISSIONS_URL":                    "the default is the name of the container",
	"GOALS_URL":                          "the default is the name of the container",
	"WEBHOOKS_URL":                       "the default is the name of the container",
}

func TestDockerComposePassesOnWhatMayBeSet(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct{ Environment map[string]string }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, v := range everyVariable(t) {
		if !slices.Contains(services, v.program) {
			continue
		}
		passed := strings.HasPrefix(file.Services[v.program].Environment[v.name], "${"+v.name+":")
		_, excused := settled[v.name]
		if used[v.name] = true; passed == excused {
			t.Errorf("docker-compose.yml passes %s on to %s: %v; it need not: %v", v.name, v.program, passed, excused)
		}
	}
	for name := range settled {
		if !used[name] {
			t.Errorf("no service reads %s", name)
		}
	}
	for _, service := range services {
		for name := range file.Services[service].Environment {
			if !slices.ContainsFunc(everyVariable(t), func(v variable) bool { return v.name == name && v.program == service }) {
				t.Errorf("docker-compose.yml gives %s to %s, which does not read it", name, service)
			}
		}
	}
}

// needless are variables of services that make run does not have, and why.
var needless = map[string]string{
	"DATABASE_POOL": "16 connections for each service are enough for one machine",
	"NATS_REPLICAS": "its NATS server is alone",
	"MIGRATE":       "it always migrates",
}

func TestMakeRunHasWhatTheServicesHave(t *testing.T) {
	all := everyVariable(t)
	for _, v := range all {
		if v.program == "front" || !slices.Contains(services, v.program) {
			continue
		}
		has := slices.ContainsFunc(all, func(other variable) bool { return other.program == "make run" && other.name == v.name })
		if _, excused := needless[v.name]; has == excused {
			t.Errorf("make run has %s of %s: %v; it need not: %v", v.name, v.program, has, excused)
		}
	}
}
