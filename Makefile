# companyscore. `make` alone prints this help.
.DEFAULT_GOAL := help
SHELL := /bin/sh

GO ?= go
BIN := bin/companyscore
DATA ?= ./data
LISTEN ?= 127.0.0.1:8080
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GO_FILES := $(shell git ls-files '*.go' 2>/dev/null)

##@ Start here
help: ## Print this help
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: deps build ## Start everything here: Redis, ClickHouse, API, worker (DATA=./data LISTEN=127.0.0.1:8080)
	@exec $(BIN) up --data $(DATA) --listen $(LISTEN) --sources facts

test: deps ## Run the whole test suite with the race detector
	CI=$${CI:-} $(GO) test -race -count=1 -timeout 12m ./...
	$(GO) test -count=1 -run Allocates ./server

##@ Work on it
deps: ## Fetch what is missing: the ClickHouse engine and redis-server
	@scripts/libchdb.sh
	@scripts/redis.sh

build: ## Build bin/companyscore
	@CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN) .

lint: ## Check format, vet and staticcheck
	@unformatted=$$(gofmt -l $(GO_FILES)); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted" >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

contract: deps ## Hold a live server against the specification, one line for each rule
	@scripts/contract.sh

fuzz-http: deps ## Send a live server what the description allows, and what nothing allows (FUZZTIME=60s each)
	@scripts/fuzz-http.sh

fuzz: deps ## Run every fuzz target for a while (FUZZTIME=10s)
	@for target in $$(grep -rhoE '^func Fuzz[A-Za-z]+' --include='*_test.go' . | cut -c6-); do \
		dir=$$(grep -rlE "^func $$target\(" --include='*_test.go' . | head -n 1 | xargs dirname); \
		echo "$$target in $$dir"; $(GO) test -run='^$$' -fuzz="^$$target$$" -fuzztime=$${FUZZTIME:-10s} "$$dir" || exit 1; \
	done

bench: deps ## Run every Go benchmark once
	$(GO) test -run='^$$' -bench=. -benchmem ./...

demo: deps build ## The main job: import and score 880 real companies and show what comes out
	@scripts/demo.sh

demo-crash: deps build ## The same, with ClickHouse, Redis and the worker killed on the way
	@scripts/demo.sh crash

compose-check: ## Read and resolve docker-compose.yml, without starting anything
	@CLICKHOUSE_PASSWORD=x ANALYST_PASSWORD=x REDIS_PASSWORD=x docker-compose config --quiet

clean: ## Remove what was built; data and fetched libraries stay
	rm -rf bin

.PHONY: help run test deps build lint contract fuzz-http fuzz bench demo demo-crash compose-check clean
