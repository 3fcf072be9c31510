// What the runner says of failed tests. Run by `node --test`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { failedIn, words } from "./failed.mjs";

const CARGO = `
     Running unittests src/lib.rs (target/debug/deps/a-1)
test good ... ok
test module::bad ... FAILED

failures:

---- module::bad stdout ----
thread 'module::bad' panicked at src/lib.rs:3:5:
two is not three

failures:
    module::bad

test result: FAILED. 1 passed; 1 failed; 0 ignored
     Running tests/window/main.rs (target/debug/deps/window-1)
test first ... ok
     Running tests/late.rs (target/debug/deps/late-1)
test result: ok. 1 passed; 0 failed; 0 ignored
error: test failed, to rerun pass \`--lib\`
`;

test("cargo: failed tests with what they said, and programs that died", () => {
  const failed = failedIn("cargo", CARGO);
  assert.deepEqual(
    failed.map(({ name }) => name),
    ["src/lib.rs: module::bad", "tests/window/main.rs (died, or did not end)"],
  );
  assert.match(failed[0].says, /two is not three/);
  assert.doesNotMatch(failed[0].says, /test result/);
});

test("cargo: what did not compile is named by its error", () => {
  assert.deepEqual(failedIn("cargo", "error[E0308]: mismatched types\n").map(({ name }) => name), [
    "error[E0308]: mismatched types",
  ]);
});

test("vitest: names and messages, files that did not load, reports that are not there", () => {
  const one = { status: "failed", fullName: "a button is there", failureMessages: ["\u001b[31mwaited in vain\u001b[0m"] };
  const testResults = [
    { name: "/x/ui/tests/a.test.ts", status: "failed", assertionResults: [{ ...one, status: "passed" }, one] },
    { name: "/x/ui/src/b.test.ts", status: "failed", message: "no such module", assertionResults: [] },
  ];
  assert.deepEqual(failedIn("vitest", "", JSON.stringify({ testResults })), [
    { name: "tests/a.test.ts: a button is there", says: "waited in vain" },
    { name: "src/b.test.ts", says: "no such module" },
  ]);
  assert.equal(failedIn("vitest", "", "").length, 1);
});

test("the end of a long log is said, and no more", () => {
  const log = Array.from({ length: 500 }, (_, n) => `line ${n + 1}`).join("\n");
  const said = words(failedIn("lines", "ok 1\nnot ok the second"), log).split("\n");
  assert.deepEqual([said[0], said.at(-1), said.length], ["--- the second", "line 500", 62]);
});
