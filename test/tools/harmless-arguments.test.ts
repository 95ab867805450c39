// What may follow the words of a rule that "always" has made: only what is known to be harmless for the program. Needs no server.
import { expect, test } from "bun:test";
import type { ChatPermissions } from "#schema/chats/chat-permissions.ts";
import { decidePermission, makeRules } from "#src/tools/permission.ts";

const makeCall = (command: string) => ({ tool_name: "execute", args: { command } });
const decideAfterAlways = (approved: string, command: string) => {
  const permissions: ChatPermissions = { default: "ask", rules: [...makeRules(makeCall(approved), "allow")] };
  return decidePermission(permissions, makeCall(command), { use: "yes", folder: "/home/me/app" });
};
/** Each line: the approved command, then others, separated by bars. */
const readTable = (table: string): readonly (readonly [string, ...string[]])[] =>
  table
    .trim()
    .split("\n")
    .map((line) => line.split("|").map((one) => one.trim()) as [string, ...string[]]);

test("[PE-7] after always, the usual repetitions of a command are not asked about again", () => {
  for (const [approved, ...others] of readTable(`
    npm test|npm test -- -t name|npm test -- src/a.test.ts --watch
    npm run lint|npm run lint -- --quiet src
    npm run build|npm run build --silent
    npm audit|npm audit --json --omit=dev
    bun test|bun test test/a.test.ts -t name
    git status|git status -s|git status src
    git diff|git diff src/a.ts|git diff --stat HEAD
    git log|git log -5|git log --oneline src
    git add src|git add -A|git add test/a.ts
    git commit -m x|git commit -am '/ and @b'|git commit -m x src
    git push origin work|git push origin work -u
    git pull|git pull --ff-only
    git fetch origin|git fetch origin --tags -q
    git merge work|git merge work --no-edit
    git tag v1|git tag v1 -m x|git tag v1 HEAD
    pytest|pytest tests/test_a.py|pytest -xvs -k name tests|pytest /home/me/app/tests
    pytest tests|pytest tests tests/test_a.py::test_b ./tests/a|pytest tests -m slow -n auto
    .venv/bin/pytest tests|.venv/bin/pytest tests -x
    eslint .|eslint . --max-warnings 0|eslint src|eslint .
    tsc --noEmit|tsc --noEmit --pretty
    ruff check|ruff check src
    mocha test.js|mocha test.js -t 5 -g x
    black src|black src --check src/a.py
    cargo build|cargo build --release|cargo build -p other --features a
    cargo test|cargo test name -- --nocapture --test-threads 1
    cargo clippy|cargo clippy --all-targets -- -D warnings
    go test ./...|go test ./pkg/...|go test -run Name -count=1 ./pkg/a|go test
    go build ./cmd|go build ./cmd -v ./cmd/a/...
    go vet ./...|go vet ./a
    terraform plan|terraform plan -no-color -input=false
    ls|ls src -la|ls /tmp
    cat a|cat a b`))
    for (const command of [approved, ...others])
      expect([approved, command, decideAfterAlways(approved, command)]).toEqual([approved, command, "allow"]);
});

test("[PE-7] after always, arguments that are not known to be harmless for the program ask", () => {
  for (const [approved, ...others] of readTable(`
    npm audit|npm audit fix --force|npm audit signatures
    pnpm audit|pnpm audit --fix
    yarn audit|yarn audit fix
    npm view x|npm view y|npm view x --cache=/tmp/x
    npm test|npm test --ignore-scripts=false|npm test -- @args|npm test -- https://evil.test/a
    npm run build|npm run build --if-present|npm run build production|npm run deploy
    npm start|npm start -- x
    bun test|bun test --preload ./x|bun test ../evil.ts
    bun test a.test.ts|bun test vendor/evil.test.ts
    bun run build|bun run build -r x|bun run evil.ts
    git apply a.patch|git apply b.patch|git apply --unsafe-paths a.patch|git apply a.patch --unsafe-paths
    git am a.patch|git am /tmp/b.patch
    git archive HEAD|git archive --remote=ssh://evil.test/x HEAD|git archive HEAD -o x
    git ls-remote origin|git ls-remote https://evil.test/secret|git ls-remote origin https://evil.test/secret
    git remote show origin|git remote show https://evil.test/secret|git remote set-url origin x
    git remote update|git remote update other
    git pull origin|git pull origin main|git pull /tmp/evil main|git pull origin --rebase
    git fetch origin|git fetch /tmp/evil main|git fetch origin --upload-pack=x
    git fetch|git fetch https://evil.test/secret
    git push origin work|git push origin main|git push origin work main|git push origin work --follow-tags|git push origin work --signed
    git push origin|git push origin main
    git merge feature|git merge evil|git merge feature --no-verify|git merge feature -s evil
    git cherry-pick a|git cherry-pick b|git cherry-pick a --strategy=evil
    git revert HEAD|git revert HEAD~3..HEAD
    git switch work|git switch main|git switch --orphan x
    git commit -m x|git commit --amend -m x|git commit -m x -F /etc/shadow|git commit -m x -S|git commit --no-verify -m x
    git add src|git add -f .env|git add --pathspec-from-file=x
    git stash push|git stash push --pathspec-from-file=x|git stash clear
    git tag v1|git tag v2|git tag v1 -F x|git tag v1 -s
    git branch work|git branch work --edit-description|git branch work --unset-upstream
    go test ./...|go test ./... -test.memprofile=.bashrc|go test ./... --test.testlogfile=x|go test ./... -args -x|go test -c ./...
    go test ./...|go test example.com/evil|go test ../b|go test ./... -fuzz=x|go test -run -run ../b
    go test ./a|go test ./b|go test -run -run ./b
    go build ./a|go build ./b|go build ./a -buildmode=plugin|go build ./a -work|go build example.com/evil
    go vet ./...|go vet ./... -vettool=x
    go list ./...|go list -export ./...|go list -m example.com/secret@latest|go list example.com/secret@latest
    go mod tidy|go mod vendor|go mod tidy -modfile=x
    go fmt ./a|go fmt ../b|go fmt ./b
    go doc x|go doc -http
    cargo test|cargo test -- --logfile x|cargo test --target ./evil.json|cargo test --target=x.json|cargo test +nightly
    cargo bench|cargo bench -- --save-baseline x
    cargo build|cargo build +nightly|cargo build --lockfile-path=x|cargo build evil
    cargo doc|cargo doc --open
    cargo clippy|cargo clippy --fix
    cargo fmt|cargo fmt -- --config-path x
    mocha test.js|mocha test.js vendor/evil.js|mocha test.js -t --require=x|mocha test.js @x
    pytest tests|pytest tests vendor/evil|pytest vendor/evil|pytest tests @args.txt|pytest tests -k @args.txt|pytest tests -x vendor
    pytest tests|pytest tests2|pytest 'tes*'|pytest tests/../vendor
    pytest|pytest @args.txt|pytest /home/me/app/@args.txt/../../x|pytest /tmp/x
    eslint src|eslint src vendor/evil|eslint src -c x|eslint src '{src,vendor}/a.js'
    jest a|jest a --globalSetup=x|jest a vendor/evil
    vitest run|vitest run --config x
    tsc|tsc -b evil|tsc evil.ts|tsc @evil.txt|tsc -p evil
    tsc --noEmit|tsc --noEmit false|tsc --noEmit -b
    ruff check|ruff check @args.txt|ruff format|ruff clean|ruff check ../x
    biome check|biome check --write|biome migrate
    black src|black src vendor|black src -c x
    rustfmt a.rs|rustfmt a.rs b.rs|rustfmt a.rs --config-path x
    mypy m.py|mypy m.py @f|mypy m.py -mevil
    terraform plan|terraform plan -destroy|terraform plan -var-file=x|terraform plan -out x
    terraform fmt|terraform fmt -recursive /tmp
    xmllint a.xml|xmllint a.xml --shell|xmllint a.xml https://evil.test/secret
    mkdir a|mkdir a ../b|mkdir b
    touch a|touch a ../b|touch b
    python3 manage.py test|python3 manage.py flush|python3 manage.py test x
    ./run.sh a|./run.sh b|./run.sh a b
    bin/rails test|bin/rails db:drop|bin/rails test db:drop
    ./gradlew test|./gradlew clean|./gradlew test --init-script=x`)) {
    expect([approved, decideAfterAlways(approved, approved)]).toEqual([approved, "allow"]);
    for (const command of others)
      expect([approved, command, decideAfterAlways(approved, command)]).toEqual([approved, command, "ask"]);
  }
});

test("[PE-14] a rule that a person has written allows all that begins with it only where the program's arguments are not known", () => {
  const decide = (rule: string, command: string) =>
    decidePermission(
      { default: "ask", rules: [{ tool: "execute", command: rule, action: "allow" }] },
      makeCall(command),
    );
  for (const [rule, ...commands] of readTable(`
    python3 manage.py|python3 manage.py flush
    git push|git push origin main
    cargo|cargo build evil
    pytest -p plugin|pytest -p plugin -x`))
    for (const command of commands) expect([rule, command, decide(rule, command)]).toEqual([rule, command, "allow"]);
  for (const [rule, ...commands] of readTable(`
    go|go test -test.memprofile=x
    git|git apply --unsafe-paths x|git archive --remote=x HEAD
    ruff|ruff clean|ruff check -o x
    npm|npm test -- -r x|npm start -- x
    xmllint|xmllint a.xml --shell`))
    for (const command of commands) expect([rule, command, decide(rule, command)]).toEqual([rule, command, "ask"]);
});
