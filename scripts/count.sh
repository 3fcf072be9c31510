# Runs parts of the test suite and counts what they report. Needs RESULTS, the folder for logs.
# shellcheck shell=bash
# Invariant: a part that ends without a count is a failure, never a silence.

PASSED=0
FAILED=0
SKIPPED=0
LAST=
LINES=()
# What tests measured, for the end.
FIGURES=()
# What failed, as `NAME<tab>FORMAT<tab>LOG<tab>REPORT` for scripts/failed.mjs.
MISSED=()

# record NAME PASSED FAILED SKIPPED SECONDS
record() {
    PASSED=$((PASSED + $2))
    FAILED=$((FAILED + $3))
    SKIPPED=$((SKIPPED + $4))
    LAST=$([ "$3" -eq 0 ] && echo passed || echo failed)
    LINES+=("$(printf '%-62s %5d passed %3d failed %3d skipped %5ds' "$1" "$2" "$3" "$4" "$5")")
}

# failed_part NAME FORMAT LOG [REPORT]: what was recorded last is told about at the end when it failed.
failed_part() {
    [ "$LAST" = passed ] || MISSED+=("$1"$'\t'"$2"$'\t'"$3"$'\t'"${4:-}")
}

skipped() {
    echo "SKIPPED $1: $2"
    record "$1 (skipped: $2)" 0 0 1 0
}

has_script() { grep -q "\"$2\":" "$1/package.json"; }

log_of() { printf '%s/%s.log' "$RESULTS" "$(tr -cs 'a-zA-Z0-9' '-' < <(printf %s "$1"))"; }

# check NAME COMMAND...: one test, passed when the command succeeds.
check() {
    local name=$1 begin=$SECONDS log
    shift
    log=$(log_of "$name")
    if "$@" </dev/null 2>&1 | tee "$log"; then
        record "$name" 1 0 0 $((SECONDS - begin))
    else
        echo "FAILED $name (log: $log)"
        record "$name" 0 1 0 $((SECONDS - begin))
        failed_part "$name" check "$log"
    fi
}

# vitest NAME FILE COMMAND...: counts from Vitest's JSON report.
vitest() {
    local name=$1 report=$RESULTS/$2.json begin=$SECONDS counts status=0
    shift 2
    "$@" -- --reporter=default --reporter=json --outputFile.json="$report" </dev/null 2>&1 | tee "$(log_of "$name")" || status=$?
    counts=$(node -e '
        const r = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
        const broken = r.testResults.filter((f) => f.status === "failed" && f.assertionResults.length === 0).length;
        console.log(r.numPassedTests, r.numFailedTests + broken, r.numPendingTests + r.numTodoTests);
    ' "$report" 2>/dev/null) || counts="0 1 0"
    # An error outside of any test fails the run without failing a test.
    if [ "$status" -ne 0 ] && [ "$(cut -d ' ' -f 2 <<<"$counts")" -eq 0 ]; then
        counts="$(cut -d ' ' -f 1 <<<"$counts") 1 $(cut -d ' ' -f 3 <<<"$counts")"
    fi
    # shellcheck disable=SC2086
    record "$name" $counts $((SECONDS - begin))
    failed_part "$name" vitest "$(log_of "$name")" "$report"
}

# cargo_tests NAME: counts from libtest's lines; a test program that died counts as one failure. A test that says
# `SKIPPED …` counts as skipped, and what it says after `FIGURE ` is told at the end.
cargo_tests() {
    local name=$1 begin=$SECONDS log counts status=0
    log=$(log_of "$name")
    CARGO_TERM_COLOR=never cargo test --workspace --lib --bins --tests --no-fail-fast -- --show-output </dev/null 2>&1 |
        tee "$log" | without_output || status=$?
    counts=$(awk -v status="$status" '
        /^     Running / { programs++ }
        /^test result: / { results++; passed += $4; failed += $6; ignored += $8 }
        /^(!!! )?SKIPPED/ { skipped++ }
        END {
            if (programs > results) failed += programs - results
            if (status != 0 && failed == 0) failed = 1
            if (programs == 0) failed = 1
            if (skipped > passed) skipped = passed
            print passed - skipped, failed + 0, ignored + skipped
        }' "$log")
    mapfile -t -O ${#FIGURES[@]} FIGURES < <(sed -n 's/^FIGURE //p' "$log")
    if [ "$(cut -d ' ' -f 2 <<<"$counts")" -gt 0 ] && second_try "$log"; then
        counts=$(awk '{ print $1 + $2, 0, $3 }' <<<"$counts")
    fi
    # shellcheck disable=SC2086
    record "$name" $counts $((SECONDS - begin))
    failed_part "$name" cargo "$log"
}

# What passing tests say stands in the log alone, but for what they measured and why one was skipped.
without_output() {
    awk '
        /^successes:$/ { hidden = 1 }
        /^(failures:|test result: )/ { hidden = 0 }
        !hidden || /^(FIGURE |(!!! )?SKIPPED)/ { print; fflush() }'
}

# second_try LOG: the tests that failed, once more and one after the other. A machine that does other things meanwhile may
# miss a moment; what passes now is named at the end. False when one fails again, or a program died.
second_try() {
    local log=$1 names=() name
    while read -r name; do
        case $name in
        *' (died, or did not end)') return 1 ;;
        *': '*) names+=("${name#*: }") ;;
        esac
    done < <(node scripts/failed.mjs names cargo "$log")
    [ ${#names[@]} -gt 0 ] && [ ${#names[@]} -le 5 ] || return 1
    say "Once more: ${names[*]}"
    CARGO_TERM_COLOR=never cargo test --workspace --lib --bins --tests --no-fail-fast -- \
        --exact --test-threads=1 "${names[@]}" </dev/null 2>&1 | tee "$log.second" || return 1
    [ "$(awk '/^test result: / { passed += $4 } END { print passed + 0 }' "$log.second")" -ge ${#names[@]} ] || return 1
    LINES+=("$(printf '  passed at the second try only: %s\n' "${names[@]}")")
}

# node_checks NAME FOLDER SCRIPT ARGUMENT...: counts the `ok` and `not ok` lines of a script in tests/FOLDER. One that
# fails without a `not ok`, or says nothing at all, is one failure.
node_checks() {
    local name=$1 folder=$2 begin=$SECONDS log failed=0 missed
    shift 2
    log=$(log_of "$name")
    # These packages want a newer Node than the page's tools do; it comes with them.
    (cd "tests/$folder" && PATH="$PWD/node_modules/.bin:$PATH" node "$@") </dev/null 2>&1 | tee "$log" || failed=1
    grep -q '^ok ' "$log" || failed=1
    missed=$(grep -c '^not ok ' "$log") || true
    [ "$missed" -eq 0 ] || failed=$missed
    record "$name" "$(grep -c '^ok ' "$log")" "$failed" 0 $((SECONDS - begin))
    failed_part "$name" lines "$log"
}

# client_checks NAME SCRIPT SERVER...: other people's clients; they stop at the first check that fails.
client_checks() {
    local name=$1
    shift
    node_checks "$name" clients "$@"
}

# The counts are the last line; when something failed, its names stand before them, and before those its logs' ends.
summary() {
    printf '\n'
    [ ${#FIGURES[@]} -eq 0 ] || printf '%s\n' 'Measured by the tests:' "${FIGURES[@]/#/    }" ''
    printf '%s\n' "${LINES[@]}"
    printf 'in %d min %d s; logs and screenshots are in %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$RESULTS"
    [ ${#MISSED[@]} -eq 0 ] || tell_failed
    printf '%d passed, %d failed' "$PASSED" "$FAILED"
    [ "$SKIPPED" -eq 0 ] || printf ', %d skipped' "$SKIPPED"
    printf '\n'
}

tell_failed() {
    local part name format log report
    for part in "${MISSED[@]}"; do
        part_of "$part"
        printf '\n==== FAILED: %s (%s)\n' "$name" "$log"
        node scripts/failed.mjs words "$format" "$log" "$report" || tail -n 60 "$log"
    done
    printf '\n==== What failed:\n'
    for part in "${MISSED[@]}"; do
        part_of "$part"
        printf '%s\n' "$name"
        node scripts/failed.mjs names "$format" "$log" "$report" | sed '/^$/d; s/^/    /' || true
    done
    printf '\n'
}

# part_of PART: into name, format, log and report of the caller. An empty field in the middle would be swallowed by
# read, so the report, which may be missing, stands last.
part_of() { IFS=$'\t' read -r name format log report <<<"$1"; }
