# Everything a person or a machine does with this repository. `make` alone lists it.
.PHONY: help run test lint fix bench fuzz package

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

run: ## install what is missing, build, and open the window (or, without a display, ask the first question)
	@scripts/run.sh

test: ## install what the tests need, build once, run all tests, print one summary
	@scripts/test.sh

lint: ## formats, warnings, licences, file sizes, fresh bindings
	@scripts/lint.sh

fix: ## format everything
	@scripts/fix.sh

bench: ## measure local models beside llama-cpp-python, what prefix reuse saves, what the MCP host and the API cost
	@scripts/bench.sh

fuzz: ## feed the readers of remote models with garbage for ten minutes each (FUZZ_SECONDS=600)
	@scripts/fuzz.sh

package: ## build the .deb and the .rpm into target/release/bundle
	@scripts/package.sh
