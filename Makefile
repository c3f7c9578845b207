# Partilha: what a person or CI does with this tree. Everything else is plain go.

SHELL := /bin/bash
MODULES := pkg services/sales services/commissions services/goals services/webhooks deploy/local deploy/e2e
CHART := deploy/kubernetes
TOOLS := .bin
FUZZ_TIME ?= 60s
FUZZ ?= .*
VULNDB ?= https://vuln.go.dev

HISTORIES ?= 10000

.PHONY: help run test full histories fuzz mutants check bench soak tidy env compose-test cluster-test demo-compose observe-check backup restore chart-test generate supply vulncheck

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: ## set up and run everything on this machine, and show one sale all the way
	@go build -o $(TOOLS)/partilha ./deploy/local
	@exec $(TOOLS)/partilha

test: ## set up and run every test but those of cluster-test, with the race detector, on a real PostgreSQL and NATS
	@go run ./deploy/local/setup
	go test -race -timeout 15m $$(go list $(MODULES:%=./%/...) | grep -v /deploy/e2e/cluster)

full: ## the heavy tests with their full counts
	@go run ./deploy/local/setup
	E2E_FULL=1 go test -race -timeout 30m -count=1 -v ./deploy/e2e
	E2E_FULL=1 go test -race -timeout 60m -count=1 -v -run UnderLoad ./services/webhooks
	E2E_FULL=1 go test -timeout 30m -count=1 -v ./deploy/e2e/cluster

histories: ## put the books through ten thousand random histories; one that fails says how to run it again
	@go run ./deploy/local/setup
	go test -count=1 -timeout 15m -parallel 4 -run '^TestTheBooksHoldThroughEveryHistory$$' ./services/commissions -histories $(HISTORIES)

fuzz: ## search the fuzz targets that FUZZ names (all), each for FUZZ_TIME (60s), for input that breaks them
	@deploy/tools/fuzz '$(FUZZ_TIME)' '$(FUZZ)' $(MODULES)

mutants: ## break the promises on purpose, one after the other, and see that a test tells
	@go run ./deploy/local/setup
	@deploy/tools/mutants deploy/e2e/mutants

env: ## random secrets for docker compose, into .env; what it says already stays
	@deploy/docker/env .env

backup: ## save the databases of docker compose, or those that deploy/backup/save is told, into the new folder BACKUP
	@deploy/backup/save $(BACKUP)

restore: ## put the folder BACKUP into empty databases; deploy/RUNBOOK.md tells what comes before and after
	@deploy/backup/restore $(BACKUP)

demo-compose: ## report a sale to the platform that runs with docker compose, and show its webhook
	@deploy/docker/demo

compose-test: ## run docker-compose.yml in a project of its own, kill every container, and count; sets up what it lacks
	@deploy/docker/trial

cluster-test: ## kill each of three NATS servers, each replica, and PostgreSQL's primary under load, and count
	@go run ./deploy/local/setup
	go test -timeout 15m -count=1 -v ./deploy/e2e/cluster

chart-test: ## render the Helm chart for several sets of values, and hold every document against Kubernetes' types and the code
	cd $(CHART) && GOWORK=off go vet ./...
	cd $(CHART) && GOWORK=off go test -count=1 ./...

check: $(TOOLS)/staticcheck ## formatting, vet, linter, and that generated files are up to date
	@unformatted="$$(gofmt -l $(MODULES) deploy/tools $(CHART))"; if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	go vet $(MODULES:%=./%/...)
	$(TOOLS)/staticcheck $(MODULES:%=./%/...)
	@for m in $(MODULES); do (cd $$m && GOWORK=off go mod tidy -diff) || { echo "run make tidy: $$m/go.mod is not tidy"; exit 1; }; done

$(TOOLS)/staticcheck: deploy/tools/go.mod
	@cd deploy/tools && GOWORK=off go build -o ../../$@ honnef.co/go/tools/cmd/staticcheck

observe-check: ## hold alert rules, dashboards and the runbook against Prometheus' own library and what the services export
	cd deploy/docker/observe/check && GOWORK=off go vet ./... && GOWORK=off go test -count=1 ./...

supply: ## hold deploy/LICENCES.md against what the programs are made of, and write a bill of materials for each into .bin/sbom
	cd deploy/tools && GOWORK=off go vet ./... && GOWORK=off go test -count=1 ./...
	cd deploy/tools && GOWORK=off go run ./supply check ../.. "$(CURDIR)/$(TOOLS)/sbom"

vulncheck: $(TOOLS)/govulncheck ## compare the code that is called with the database of Go's vulnerabilities at VULNDB; needs the network
	@deploy/tools/vulncheck $< '$(VULNDB)' pkg partilha.dev/...

$(TOOLS)/govulncheck: deploy/tools/go.mod
	@cd deploy/tools && GOWORK=off go build -o ../../$@ golang.org/x/vuln/cmd/govulncheck

generate: ## write the pages that are made from the code: deploy/CONFIGURATION.md, deploy/LICENCES.md
	go generate ./deploy/e2e/configuration
	cd deploy/tools && GOWORK=off go generate ./supply

tidy: ## bring every go.mod up to date
	@for m in $(MODULES) deploy/tools deploy/docker/observe/check $(CHART); do (cd $$m && GOWORK=off go mod tidy); done

bench: ## measure against the yardstick, in one run of a quarter of an hour; what takes longer with BENCH="-parts balance,leaderboard,backfill"
	@go run ./deploy/local/setup
	go run ./deploy/e2e/bench $(BENCH)

soak: ## ten minutes at full load, everything counted at the end
	@go run ./deploy/local/setup
	go run ./deploy/e2e/bench soak $(SOAK)
