# companyscore. `make` alone prints this help.
.DEFAULT_GOAL := help
SHELL := /bin/sh

GO ?= go
BIN := bin/companyscore
DATA ?= ./data
LISTEN ?= 127.0.0.1:8080
EXAMPLES ?= true
# An e-mail address or URL at which providers of live sources can reach you. Without it these are off.
CONTACT ?=
K6 := go.k6.io/k6@v1.8.1
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
MISSPELL := github.com/golangci/misspell/cmd/misspell@v0.8.0
# The newest tag, if there is one, and the commit: part of the program and labels of the image.
export VERSION := $(or $(shell git describe --tags --dirty 2>/dev/null),dev)
export COMMIT := $(shell git describe --always --exclude='*' --abbrev=40 --dirty 2>/dev/null)
LDFLAGS := -X companyscore/internal/release.version=$(VERSION) -X companyscore/internal/release.commit=$(COMMIT)
GO_FILES := $(shell git ls-files '*.go' 2>/dev/null)

##@ Start here
help: ## Print this help
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: deps build ## Start everything here: Redis, ClickHouse, API, worker (CONTACT=you@example.com DATA=./data LISTEN=127.0.0.1:8080 EXAMPLES=true)
	@exec $(BIN) up --data $(DATA) --listen $(LISTEN) --examples=$(EXAMPLES) $(if $(CONTACT),--contact '$(CONTACT)',--sources facts)

test: deps ## Run the tests, but for what test-all adds
	CI=$${CI:-} TMPDIR=$$(scripts/test-tmp.sh) CGO_ENABLED=0 $(GO) test -trimpath -vet=off -count=1 -timeout 30m ./... # lint runs vet

.PHONY: test-all
test-all: deps ## Run all tests: with the race detector, crashes, and containers where podman is installed
	CI=$${CI:-} TMPDIR=$$(scripts/test-tmp.sh) TEST_ALL=1 $(GO) test -race -vet=off -count=1 -timeout 30m ./...
	CGO_ENABLED=0 $(GO) test -trimpath -vet=off -count=1 -run Allocates ./server
	@if command -v podman >/dev/null 2>&1; then scripts/compose-test.sh --quick || [ $$? = 77 ]; fi # 77: no container can run here

backtest: build ## Measure the scores of 880 companies, and of 227 with statements; fails if a figure is beyond its limit in examples/
	@$(BIN) backtest examples/companies.csv --outcome revenue_usd,market_cap_usd,status --at 2026-11-22 --limits examples/limits.json
	@echo
	@$(BIN) backtest examples/statements.csv --outcome revenue_usd --at 2010-07-01 --limits examples/statements-limits.json

curves: build ## Count percentiles of signals in CSV files beside those of the curves (FILES=examples/statements.csv)
	@$(BIN) curves $${FILES:-examples/statements.csv}

demo-universe: deps build ## Import and score 20,863 listed companies and print statistics; fails if a limit is not met
	@scripts/demo-universe.sh

##@ Development
deps: ## Install missing dependencies: the ClickHouse engine and redis-server
	@GO=$(GO) scripts/needs.sh
	@scripts/libchdb.sh
	@scripts/redis.sh

build: ## Build bin/companyscore
	@[ -x $(BIN) ] || echo "compiling $(BIN); the first time takes some minutes"
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN) .

lint: ## Check format, width of lines, vet, staticcheck, spelling, and words that the glossary replaces
	@unformatted=$$(gofmt -l $(GO_FILES)); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted" >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	@git ls-files '*.go' '*.lua' '*.sh' '*.sql' '*.md' '*.yaml' Makefile | grep -v /testdata/ | \
		xargs $(GO) run $(MISSPELL) -error -i clientes,productos,assistante,architecte # other languages, in links and roles
	@scripts/words.sh
	@scripts/width.sh

.PHONY: docs-test
docs-test: deps build ## Run the commands and code of README.md and docs/ against a real `up` (PAGES=docs/quickstart.md)
	@$(GO) run ./internal/test/docstest $(PAGES)

contract: deps ## Test a live server against the specification, one line per rule
	@scripts/contract.sh

sql-clients: deps build ## Try SQL clients against the embedded ClickHouse: JavaScript, Go, recorded ones, DuckDB, R (DOMAINS=20000)
	@scripts/sql-clients.sh

e2e: deps build ## Test the developer console in a browser, against a real up (installs chromium and npm packages)
	@scripts/e2e.sh --test --test-reporter=spec e2e/console.mjs

screenshots: deps build ## Make the pictures of docs/images
	@scripts/e2e.sh e2e/screenshots.mjs

fuzz-http: deps ## Send random valid and invalid requests to a live server (FUZZTIME=60s each)
	@scripts/fuzz-http.sh

ssrf: ## Test the client of live sources against hostile targets, and print how each is refused
	@$(GO) test -count=1 -run '^TestHostileTargets$$' -v ./scoring/source/fetch | \
		awk '/ssrf_test.go:/ {sub(/^ *ssrf_test.go:[0-9]+: /, ""); print; n++} /^(--- )?FAIL/ {bad = 1} END {print n " hostile targets, " (bad ? "NOT all refused" : "all refused"); exit bad || n == 0}'

fuzz: deps ## Run every fuzz target (FUZZTIME=10s each)
	@for target in $$(grep -rhoE '^func Fuzz[A-Za-z]+' --include='*_test.go' . | cut -c6-); do \
		dir=$$(grep -rlE "^func $$target\(" --include='*_test.go' . | head -n 1 | xargs dirname); \
		echo "$$target in $$dir"; $(GO) test -run='^$$' -fuzz="^$$target$$" -fuzztime=$${FUZZTIME:-10s} "$$dir" || exit 1; \
	done

.PHONY: fuzz-sql
fuzz-sql: deps ## Send an analyst's random statements to an engine of its own: none may end it or outlive its limit (FUZZTIME=1h)
	$(GO) test -run '^$$' -fuzz '^FuzzAnalystStatements$$' -fuzztime $${FUZZTIME:-1h} -parallel 2 -timeout 0 ./clickhouse/embedded

bench: deps ## Run every Go benchmark once
	$(GO) test -run='^$$' -bench=. -benchmem ./...

demo: deps build ## Import and score 880 real companies and print results
	@scripts/demo.sh

demo-crash: deps build ## The same, with kills of ClickHouse, Redis, the batch jobs and the worker
	@scripts/demo.sh crash

faults: deps ## Kill and freeze processes of a live system under load, then check all answers (SEED=1 MINUTES=5)
	@cd internal/test/faults && TEST_ALL=1 $(GO) test -count=1 -timeout 0 -run '^TestLedger$$' -args -seed $${SEED:-1} -for $${MINUTES:-5}m

.PHONY: demo-engine-end
demo-engine-end: deps build ## Have the watch end the engine beside 20 analysts, hot reads and cold runs (RATE=1000 RUNS=100 LENGTH=60)
	@scripts/engine-end.sh

demo-sources: deps build ## Cold runs for 200 invented companies on slow and failing fakes of all sources (SEED=1)
	@scripts/demo-sources.sh

demo-epochs: deps build ## Two servers behind nginx give equal answers about movers and distribution (REQUESTS=10000)
	@scripts/epochs.sh

bench-universe: deps build ## Measure count and movers of a large universe and check the results (DOMAINS=1000000 RECORDS=5)
	@DOMAINS=$${DOMAINS:-1000000} RECORDS=$${RECORDS:-5} scripts/bench-universe.sh

bench-stores: deps build ## Compare the statistics with PostgreSQL 15 and DuckDB (DOMAINS=1000000 RECORDS=5)
	@DOMAINS=$${DOMAINS:-1000000} RECORDS=$${RECORDS:-5} scripts/bench-stores.sh

image: ## Build the image companyscore:local, with version and commit as labels
	@docker build --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) -t companyscore:local .

compose-check: ## Validate docker-compose.yml
	@CLICKHOUSE_PASSWORD=x ANALYST_PASSWORD=x REDIS_PASSWORD=x docker-compose config --quiet

compose-test: ## Build the image, run docker-compose.yml with it, and test it through its proxy (ARGS=--quick for the short form)
	@scripts/compose-test.sh $(ARGS)

##@ Benchmarks (docs/bench.md)
bench-hot: deps build ## 20,000 reads per second of one company for 30 s: p99 below 2 ms
	@scripts/bench.sh hot

bench-mixed: deps build ## 10,000 calls per second, 1 % of them cold, for MINUTES=10
	@scripts/bench.sh mixed

bench-resident: deps build ## Random reads of COMPANIES=1000000 from memory (RATE=10000)
	@scripts/bench.sh resident

bench-conditional: deps build ## 60 s of conditional reads of COMPANIES=10000 while 100 runs a second add companies (RATE=2000)
	@scripts/bench.sh conditional

bench-analytics: deps build ## Distribution, movers and cohorts at 2,000/s during counts (DOMAINS=1000000)
	@scripts/bench.sh analytics

bench-console: deps build ## Measure the pages of the console over DOMAINS=1000000 companies with RECORDS=3: p95 below 100 ms
	@scripts/bench-console.sh

bench-cold: deps ## RUNS=100000 of facts alone by run start with one POST per second, and lone POSTs
	$(GO) test ./contract -count=1 -run '^$$' -bench '^BenchmarkColdRuns$$' -benchtime $${RUNS:-100000}x -timeout 20m
	$(GO) test ./contract -count=1 -run '^$$' -bench '^BenchmarkLoneCall$$' -benchtime 50x

bench-paired: deps build ## Compare the hot read with that of another commit, in turns (BEFORE=HEAD~1 ROUNDS=20 BEFORE_ENV= NOW_ENV=)
	@scripts/bench-paired.sh $${BEFORE:-HEAD~1} $${ROUNDS:-20}

.PHONY: bench-sql bench-analysts
bench-sql: deps build ## Time every query of docs/sql at DOMAINS=1000000 companies; fails if one takes over LIMIT_SECONDS=2
	@scripts/bench-sql.sh

bench-analysts: deps build ## Two analysts keep 20 heavy statements in flight beside hot reads: shares, p99 (DOMAINS=300000 RATE=1000 DURATION=30s)
	@scripts/bench-analysts.sh

bench-requests: deps build ## Compare the log of requests with the count of a client (RATE=10000 DURATION=60s)
	@scripts/request-log.sh

bench-peers: deps build ## Compare the hot read with bare Fiber, nginx, net/http, Redis and ClickHouse, in turns
	@scripts/nginx.sh
	@mkdir -p bench-results
	@$(BIN) bench peers --json bench-results/peers.json

bench-wrk: deps build ## Measure the hot read with wrk
	@scripts/bench.sh wrk

bench-k6: deps build ## Measure the hot read with k6, built once (RATE=2000)
	@if [ ! -x bin/k6 ]; then GOBIN=$(CURDIR)/bin $(GO) install $(K6); fi
	@scripts/bench.sh k6

##@ Clean up
clean: ## Remove bin/; data and fetched libraries stay
	rm -rf bin

.PHONY: backtest curves demo-epochs demo-universe bench-conditional bench-analytics bench-universe bench-stores help image compose-test run test deps build lint contract sql-clients e2e screenshots fuzz-http ssrf fuzz bench bench-hot bench-mixed bench-resident bench-console bench-cold bench-paired bench-requests bench-peers bench-wrk bench-k6 demo demo-crash demo-sources faults compose-check clean
