// Which calls the rules allow, deny or ask about; above all, that shell text cannot bypass the rules. Needs no server.
import { expect, test } from "bun:test";
import type { ChatPermissions } from "#schema/chats/chat-permissions.ts";
import { decidePermission, isCommandPrefix, makeRules } from "#src/tools/permission.ts";
import { parsePlainCommands } from "#src/tools/processes/plain-commands.ts";

const makeCommandCall = (command: string) => ({ tool_name: "execute", args: { command } });
const makeCall = (tool_name: string) => ({ tool_name, args: {} });
const allowCommands = (...commands: string[]): ChatPermissions => ({
  default: "ask",
  rules: commands.map((command) => ({ tool: "execute", command, action: "allow" })),
});

test("[PE-1] the first rule that matches a tool's name or prefix decides; without rules, everything is allowed", () => {
  expect(decidePermission(null, makeCommandCall("rm -rf /"))).toBe("allow");
  const rules: ChatPermissions = {
    default: "allow",
    rules: [
      { tool: "read_file", action: "allow" },
      { tool: "github__*", action: "ask" },
      { tool: "write_*", action: "deny" },
      { tool: "write_file", action: "allow" },
      { tool: "execute", action: "ask" },
    ],
  };
  const names = ["read_file", "github__merge", "github", "write_file", "process_list", "execute"];
  expect(names.map((name) => decidePermission(rules, makeCall(name)))).toEqual([
    "allow",
    "ask",
    "allow",
    "deny",
    "allow",
    "ask",
  ]);
});

test("[PE-2] a command in another folder is allowed only if the change of the folder is allowed, too", () => {
  const decide = (rules: ChatPermissions, args: object, folder?: string) =>
    decidePermission(rules, { tool_name: "execute", args }, { use: "yes", folder });
  const command = "sh build.sh";
  const rules = allowCommands(command);
  for (const workdir of ["vendor/evil", "/tmp/evil", "..", "~", "./vendor/..", "a' 'b"])
    expect([workdir, decide(rules, { command, workdir }, "/home/me")]).toEqual([workdir, "ask"]);
  for (const workdir of [undefined, ".", "./", "/home/me", "/home/me/"])
    expect([workdir, decide(rules, { command, workdir }, "/home/me")]).toEqual([workdir, "allow"]);
  // The folder is not known.
  expect(decide(rules, { command, workdir: "/home/me" })).toBe("ask");
  expect(decide(allowCommands(command, "cd vendor"), { command, workdir: "vendor" })).toBe("allow");

  const always = makeRules({ tool_name: "execute", args: { command: "rm -f notes.txt", workdir: "other" } }, "allow");
  const remembered: ChatPermissions = { default: "ask", rules: [...always] };
  expect(decide(remembered, { command: "rm -f notes.txt", workdir: "other" })).toBe("allow");
  expect(decide(remembered, { command: "rm -f notes.txt", workdir: "others" })).toBe("ask");

  // Another agent has a folder of its own.
  const inAgent = { command, agent: "dev" };
  expect(decide(rules, inAgent, "/home/me")).toBe("ask");
  expect(decide(allowCommands(command, "cd"), { ...inAgent, workdir: "/home/me" }, "/home/me")).toBe("ask");
  expect(decide(rules, { command, agent: "" }, "/home/me")).toBe("allow");
  const inAgentAlways = makeRules({ tool_name: "execute", args: inAgent }, "allow");
  expect(inAgentAlways.map((rule) => rule.command)).toEqual(["@agent dev", "sh build.sh"]);
  const inAgentRules: ChatPermissions = { default: "ask", rules: [...inAgentAlways] };
  for (const [agent, action] of [
    ["dev", "allow"],
    ["other", "ask"],
    ["o'ther", "ask"],
  ] as const)
    expect([agent, decide(inAgentRules, { command, agent })]).toEqual([agent, action]);

  // A refusal is about the command, in whatever folder.
  const never = makeRules({ tool_name: "execute", args: { command: "rm -r build", workdir: "other" } }, "deny");
  expect(never).toEqual([{ tool: "execute", command: "rm -r build", action: "deny" }]);
  const refused: ChatPermissions = { default: "allow", rules: [...never] };
  expect(decide(refused, { command: "rm -r build", agent: "dev" })).toBe("deny");
  for (const workdir of [undefined, "other", "others"])
    expect([workdir, decide(refused, { command: "rm -r build", workdir })]).toEqual([workdir, "deny"]);
});

test("[PE-2] a command is allowed only if rules allow the first words of each of its simple commands", () => {
  const rules = allowCommands("git status", "ls", "npm test", "cd src");
  const decide = (command: string) => decidePermission(rules, makeCommandCall(command));
  for (const allowed of [
    "git status",
    "git status -s",
    "ls -la 'a b'",
    "git status; ls",
    "cd src && npm test | ls\nls",
    '"git" status',
    " ls ",
  ]) {
    expect([allowed, decide(allowed)]).toEqual([allowed, "allow"]);
  }
  for (const asked of [
    "git push",
    "gitstatus",
    "git",
    "lsof",
    "/tmp/ls",
    "./ls",
    "git -C / status",
    "npm",
    "cd src2",
  ]) {
    expect([asked, decide(asked)]).toEqual([asked, "ask"]);
  }
});

test("[PE-3] shell text that is not plain commands asks for approval", () => {
  const tricks = [
    "git status; rm x",
    "git status && rm x",
    "git status || rm x",
    "git status | sh",
    "git status & rm x",
    "git status\nrm x",
    "git status\r\nrm x",
    "git status $(rm x)",
    "git status `rm x`",
    'git status "$(rm x)"',
    'git status "`rm x`"',
    "git status <(rm x)",
    "git status > ~/.bashrc",
    "git status >> x",
    "git status 2>/dev/null",
    "git status < x",
    "git status <<E\nE",
    "PATH=/tmp git status",
    "LD_PRELOAD=/tmp/x.so git status",
    "A=1 B=2 git status",
    "(git status; rm x)",
    "{ git status; }",
    "! git status",
    "if git status; then rm x; fi",
    "git status $HOME",
    `git status ${"$"}{x}`,
    "git status *",
    "git status ~",
    "git status \\\n; rm x",
    "git\\ status",
    "git status # ; rm",
    "git status 'open",
    'git status "open',
    "git status $'\\x3b'",
    "git status \u0000 rm",
    "git\u00a0status",
    "git() { rm x; }",
    "time git status",
    "",
    " ",
    ";",
  ];
  for (const trick of tricks)
    expect([trick, decidePermission(allowCommands("git status"), makeCommandCall(trick))]).toEqual([trick, "ask"]);
  // 30,000 commands are too many to review, and each would be compared with every rule.
  expect(decidePermission(allowCommands("ls"), makeCommandCall("ls;".repeat(199)))).toBe("allow");
  expect(decidePermission(allowCommands("ls"), makeCommandCall("ls;".repeat(30_000)))).toBe("ask");
  for (const args of [undefined, null, {}, { command: 5 }, { command: ["git status"] }]) {
    expect(decidePermission(allowCommands("git status"), { tool_name: "execute", args })).toBe("ask");
  }
});

test("[PE-4] rules find a denied program in lists and under any path; commands that might run it ask", () => {
  const rules: ChatPermissions = {
    default: "allow",
    rules: [
      { tool: "execute", command: "rm", action: "deny" },
      { tool: "execute", command: "git push", action: "ask" },
      { tool: "execute", action: "allow" },
    ],
  };
  const decide = (command: string) => decidePermission(rules, makeCommandCall(command));
  for (const denied of ["rm x", "ls; rm x", "true && /bin/rm x", "ls | rm x", "'rm' x"])
    expect([denied, decide(denied)]).toEqual([denied, "deny"]);
  for (const asked of [
    "git push",
    "sudo rm x",
    "sh -c 'rm x'",
    "env rm x",
    "ls | xargs rm",
    "echo $(rm x)",
    "find . -exec rm x",
    "/usr/bin/env rm",
    "chrt 1 rm x",
    "tmux new rm",
    "uv run rm",
    "mise exec rm",
    "git submodule foreach rm",
    "faketime now rm x",
  ]) {
    expect([asked, decide(asked)]).toEqual([asked, "ask"]);
  }
  for (const allowed of ["ls", "git pull", "echo rm", "npm run lint", "grep run x"])
    expect([allowed, decide(allowed)]).toEqual([allowed, "allow"]);
  const denyByDefault: ChatPermissions = {
    default: "deny",
    rules: [{ tool: "execute", command: "ls", action: "allow" }],
  };
  expect(["ls", "ls $(x)", "rm"].map((command) => decidePermission(denyByDefault, makeCommandCall(command)))).toEqual([
    "allow",
    "deny",
    "deny",
  ]);
});

test("[PE-14] an allowed reading program asks if an argument makes it write, unless the rule contains that argument", () => {
  const readingPrograms =
    "find|git log|git diff|git grep|git ls-remote|sort|sed|tree|uniq|xxd|curl|date|fd|rg|yq|less|shuf".split("|");
  const rules: ChatPermissions = {
    default: "allow",
    rules: [
      ...readingPrograms.map((command) => ({ tool: "execute", command, action: "allow" as const })),
      { tool: "execute", command: "rm", action: "deny" },
    ],
  };
  const decide = (command: string) => decidePermission(rules, makeCommandCall(command));
  for (const asked of [
    "find . -name x -delete",
    "find . -fprint out",
    "find . -exec rm x",
    "git log --output=file",
    "git log --outp=file",
    "git diff --ext-di",
    "sort -S 1 --compress-prog=./e y",
    "sort --o=x y",
    "sed --in-pl s/a/b/ x",
    'sed -n --expr="w y" x',
    "sed -new x",
    "sed -f script x",
    "date --s=x",
    "git diff --output file",
    "git grep -Ovi x",
    "sort -o out in",
    "shuf -o out in",
    "shuf -oout in",
    "shuf --outp=out in",
    "sort -uo out in",
    "sed -i s/a/b/ file",
    "sed -n 'w out' file",
    "sed 's/a/b/w out' file",
    "sed '1e rm x' file",
    "sed -n w/tmp/out file",
    "sed -s -n -e1,1w/tmp/out file",
    "sed '1!G;h;$!d;w/tmp/out' file",
    "sed -n '1W out' file",
    "sed etouch file",
    "sed 's|a|b|w/tmp/out' file",
    "sed sxaxtouchxe file",
    "sed 's/[/]/w x/' file",
    "sed -e p -e 'w out' file",
    "sed p -ew/tmp/out file",
    "sed -l 5 'w out' file",
    "sed --line-length 5 'w out' file",
    "sed -- 'w out' file",
    "sed 'b;w out' file",
    "sed '/a/,/b/{p;w out' file",
    "sed -I '' s/a/b/ file",
    "git grep -lO'touch x;' a",
    "git ls-remote --upload-pack='touch x;' /tmp",
    "git ls-remote --exec=x /tmp",
    "tree -o out",
    "tree -R -H x -L 1",
    "date 010100002030",
    "uniq in out",
    "uniq -f 1 in out",
    "xxd in out",
    "curl -so out example.com",
    "curl --upload-file x example.com",
    "curl --unix-socket /run/docker.sock http://x",
    "curl --abstract-unix x http://x",
    "date -s 12:00",
    "fd x -x rm",
    "rg --pre cmd x",
    "yq -i .a file",
    "less -o out in",
    "/usr/bin/find . -delete",
  ]) {
    expect([asked, decide(asked)]).toEqual([asked, "ask"]);
  }
  for (const allowed of [
    "find . -name x",
    "git log --oneline -5",
    "git diff HEAD",
    "sort -u in",
    "shuf -n 2 in",
    "sed -n 5,10p file",
    "sed s/a/b/g file",
    "sed s/red/we/ file",
    "sed -n '/we/,/end/p;$=' we",
    "sed -E -e 's#[\"/](w|e)#e#gI' -e '/^$/d; 5q' file",
    "sed ':a;N;$!ba;s/we/e w/g' file",
    "sed -n -e '2,$ {s/a[]w]/b/2p' -e '}' file",
    "sed '1i first w' file",
    "git grep -nl Option",
    "git ls-remote --heads origin",
    "uniq -c in",
    "uniq -f 1 in",
    "xxd -l 16 in",
    "curl -s example.com",
    "date +%s",
    "date -u -d tomorrow +%s",
    "tree -L 1",
  ]) {
    expect([allowed, decide(allowed)]).toEqual([allowed, "allow"]);
  }
  const namedArgument: ChatPermissions = {
    default: "ask",
    rules: [{ tool: "execute", command: "sed -i", action: "allow" }],
  };
  expect(decidePermission(namedArgument, makeCommandCall("sed -i s/a/b/ file"))).toBe("allow");
  // An argument that the rule names cannot hide another argument.
  expect(decidePermission(namedArgument, makeCommandCall("sed -i 'e touch x' file"))).toBe("ask");
  const allowDelete = allowCommands("find . -name x -delete");
  expect(decidePermission(allowDelete, makeCommandCall("find . -name x -delete -exec rm y"))).toBe("ask");
});

test("[PE-7] after always, commands that delete, overwrite, send elsewhere or take code from another file still ask", () => {
  for (const [approved, allowed, ...others] of [
    ["git stash list", "git stash list -p", "git stash clear", "git stash drop", "git stash"],
    ["git stash drop", "git stash drop", "git stash drop 2"],
    ["git remote -v", "git remote -v", "git remote set-url origin https://evil.test/a", "git remote -v update"],
    ["git remote add a b", "git remote add a b", "git remote add a c"],
    ["git branch --list", "git branch --list", "git branch -D work", "git branch"],
    ["git branch work", "git branch work main", "git branch work -D", "git branch work -fd", "git branch work --del"],
    ["git worktree list", "git worktree list -v", "git worktree remove --force x", "git worktree list -f"],
    ["git reflog", "git reflog", "git reflog expire --expire=now --all", "git reflog delete x"],
    ["git checkout work", "git checkout work", "git checkout work -f -- .", "git checkout work src"],
    ["git reset HEAD", "git reset HEAD", "git reset HEAD --hard"],
    ["git restore a", "git restore a", "git restore a ."],
    ["git switch work", "git switch work -q", "git switch work -f", "git switch work --discard-changes"],
    ["git fetch origin", "git fetch origin -v", "git fetch origin +main:main", "git fetch origin -f"],
    [
      ...["git push origin work", "git push origin work -u", "git push origin --force --mirror", "git push evil work"],
      ...["git push origin +work", "git push origin :work", "git push origin work:main", "git push origin -uf work"],
      ...["git push origin --delete work", "git push origin --force-with-lease", "git push origin --all"],
    ],
    ["git tag --list", "git tag --list", "git tag -d v1"],
    ["git tag v1", "git tag v1 -m x", "git tag v1 -fd"],
    ["go mod tidy", "go mod tidy -v", "go mod edit -replace=a=/tmp/evil"],
    ["go build ./...", "go build ./... -v", "go build ./... -ldflags=-extld=./x"],
    ["go test ./...", "go test ./... -run A", "go test ./... -coverprofile=.bashrc"],
    ["tofu plan", "tofu plan -no-color", "tofu plan -out=.bashrc"],
    [
      ...[
        "pytest tests",
        "pytest tests -xvs -k a --maxfail=2 --tb=short",
        "pytest tests -p evil",
        "pytest tests -pevil",
      ],
      ...[
        "pytest tests --basetemp=/tmp/x",
        "pytest tests --basetemp x",
        "pytest tests --rootdir=vendor",
        "pytest tests -c x",
      ],
      ...[
        "pytest tests /tmp/evil.py",
        "pytest tests ../evil.py",
        "pytest tests a/../../evil.py",
        "pytest tests -o a=b",
      ],
    ],
    [
      "eslint src",
      "eslint src --max-warnings 0 --ext .ts",
      "eslint src -o x",
      "eslint src --config e.js",
      "eslint src -f ./x.js",
    ],
    ["pytest a", "pytest a -n auto", "pytest a -n auto -p evil", "pytest a -nx"],
    [
      "cargo build",
      "cargo build --target x",
      "cargo build --target-dir x",
      "cargo build --target-dir=x",
      "cargo build -Zx",
    ],
    ["eslint src --fix", "eslint src --fix", "eslint src --fix -c x"],
    ["mocha test.js", "mocha test.js --grep a -t 100", "mocha test.js -r ./e.js", "mocha test.js -n import=./e.js"],
    ["jest src", "jest src -t a --runInBand", "jest src --config j.js", "jest src --globalSetup=./e.js", "jest src -u"],
    ["vitest run", "vitest run --changed", "vitest run --root x", "vitest run --coverage.reportsDirectory=src"],
    [
      "prettier src",
      "prettier src --check",
      "prettier src --write",
      "prettier src --plugin=./p.js",
      "prettier src -lw",
    ],
    ["ruff check", "ruff check src --select E", "ruff check --fix", "ruff check -o x", "ruff check -no x"],
    ["mypy src", "mypy src --strict", "mypy src --junit-xml x", "mypy src --config-file=x"],
    ["tsc a.ts", "tsc a.ts --noEmit", "tsc a.ts --outFile x.js", "tsc a.ts -p evil"],
    ["gofmt -l", "gofmt -l", "gofmt -l -w a.go"],
    [
      ...["npm test", "npm test -- -t a --watch src/a.test.ts", "npm test -- -r x", "npm test -- --require=./x"],
      ...["npm test -- /tmp/evil.js", "npm test -- ../evil.js", "npm test -- --config x", "npm --silent test -- -r x"],
      ...["npm test -node-options=--require=./x", "npm test -w other"],
    ],
    ["npm run lint", "npm run lint -- src --max-warnings 0 -v", "npm run lint -- -c x", "npm run lint -- --plugin x"],
    ["yarn test", "yarn test --verbose", "yarn test -r x", "yarn test --globalSetup=./x"],
    ["pnpm run test", "pnpm run test -k a", "pnpm run test -p evil"],
    ["bun test", "bun test --timeout 100 a", "bun test --preload ./x", "bun test /tmp/x.ts", "bun test --conditions x"],
    ["npm start", "npm start", "npm start -- --loader ./x"],
    ["npm run build -- --mode x", "npm run build -- --mode x", "npm run build -- --mode y", "npm run build"],
  ] as const) {
    const permissions = { default: "ask" as const, rules: [...makeRules(makeCommandCall(approved), "allow")] };
    for (const same of [approved, allowed])
      expect([same, decidePermission(permissions, makeCommandCall(same))]).toEqual([same, "allow"]);
    for (const other of others)
      expect([other, decidePermission(permissions, makeCommandCall(other))]).toEqual([other, "ask"]);
  }
});

test("[PE-14] absolute paths below the agent's own folder are like relative ones, and others still ask", () => {
  const rules = allowCommands("pytest", "tsc --noEmit", "@agent dev");
  const decide = (command: string, folder?: string, args: object = {}) =>
    decidePermission(rules, { tool_name: "execute", args: { command, ...args } }, { use: "yes", folder });
  const command = "pytest /home/me/app/tests/a.py --ignore=/home/me/app/old -x";
  for (const folder of ["/home/me/app", "/home/me/app/", "/home/me", "/"])
    expect([folder, decide(command, folder)]).toEqual([folder, "allow"]);
  for (const folder of [undefined, "/home/me/ap", "/home/me/app/src"])
    expect([folder, decide(command, folder)]).toEqual([folder, "ask"]);
  expect(decide("pytest /home/me/app", "/home/me/app/")).toBe("allow");
  for (const asked of [
    "pytest /home/me/app/../evil.py",
    "pytest /home/me/app/tests/..",
    "pytest /home/me/app//etc/evil.py",
    "pytest /home/me/apple/evil.py",
    "pytest --ignore=/tmp/x",
    "pytest -c /home/me/app/x.ini",
    "pytest --confcutdir=/home/me/app",
    "tsc --noEmit /tmp/x.ts",
  ])
    expect([asked, decide(asked, "/home/me/app")]).toEqual([asked, "ask"]);
  // Another agent has other files under the same path.
  expect(decide("pytest tests", "/home/me/app", { agent: "dev" })).toBe("allow");
  expect(decide("pytest /home/me/app/tests", "/home/me/app", { agent: "dev" })).toBe("ask");
});

test("[PE-14] a rule of one or two words does not allow to delete, overwrite or send elsewhere", () => {
  const rules = allowCommands(..."git|git stash|git checkout|git push|go mod|eslint|npm".split("|"));
  const decide = (command: string) => decidePermission(rules, makeCommandCall(command));
  for (const asked of "git stash clear|git -C a branch -D b|git checkout .|git push -f|go mod edit|eslint --fix|npm t -- -r x".split(
    "|",
  ))
    expect([asked, decide(asked)]).toEqual([asked, "ask"]);
  for (const allowed of "git stash|git log|git checkout b|git push origin b|go mod tidy|eslint .|npm ls test -g".split(
    "|",
  ))
    expect([allowed, decide(allowed)]).toEqual([allowed, "allow"]);
  // Where everything is allowed, a rule that denies another command changes nothing for these.
  const open: ChatPermissions = { default: "allow", rules: [{ tool: "execute", command: "rm", action: "deny" }] };
  expect(decidePermission(open, makeCommandCall("eslint --fix . && git push -f"))).toBe("allow");
});

test("[PE-14] text in quotes that bash evaluates as arithmetic asks, unless the rule names it", () => {
  const rules: ChatPermissions = {
    default: "allow",
    rules: [
      ...["printf", "test", "[", "unset", "ls"].map((command) => ({
        tool: "execute",
        command,
        action: "allow" as const,
      })),
      { tool: "execute", command: "touch", action: "deny" },
    ],
  };
  const decide = (command: string) => decidePermission(rules, makeCommandCall(command));
  for (const asked of [
    "printf -v 'a[$(touch x)]' x",
    "printf -v PATH /tmp; ls",
    "printf '%d' 'a[$(touch x)]'",
    "test -v 'a[$(touch x)]'",
    "test 'a[`touch x`]' -eq 0",
    "unset 'a[$(touch x)]'",
    "let 'a[$(touch x)]'",
    "read 'a[$(touch x)]'",
  ])
    expect([asked, decide(asked)]).toEqual([asked, "ask"]);
  for (const allowed of ["printf '%s [x]' a", "test -f a", "ls 'a[$(x)]'"])
    expect([allowed, decide(allowed)]).toEqual([allowed, "allow"]);
  const approved = "printf -v 'a[$(date)]' x";
  const remembered: ChatPermissions = { default: "ask", rules: [...makeRules(makeCommandCall(approved), "allow")] };
  expect(decidePermission(remembered, makeCommandCall(approved))).toBe("allow");
  expect(decidePermission(remembered, makeCommandCall(`${approved} y`))).toBe("ask");
});

test("[PE-7] a remembered answer applies to the tool, or to the first words of each command", () => {
  const listCommands = (command: string, action: "allow" | "deny" = "allow") =>
    makeRules(makeCommandCall(command), action).map((rule) => rule.command);
  expect(makeRules(makeCall("write_file"), "deny")).toEqual([{ tool: "write_file", action: "deny" }]);
  expect(listCommands("git commit -m 'two words'")).toEqual(["git commit"]);
  expect(listCommands("rm -rf build")).toEqual(["rm -rf build"]);
  expect(listCommands("ls")).toEqual(["ls"]);
  expect(listCommands(`rm ${"x".repeat(4_096)}`)).toEqual([]);
  expect(listCommands("cat 'a b'")).toEqual(["cat 'a b'"]);
  // A remembered rule allows the same command again, even one that writes.
  expect(listCommands("find . -name x -delete; sort -o out in")).toEqual(["find . -name x -delete", "sort -o out in"]);
  expect(decidePermission(allowCommands("find . -name x -delete"), makeCommandCall("find . -name x -delete"))).toBe(
    "allow",
  );
  const compound = "cd src && npm test -- --watch | tail -5; npm test";
  expect(listCommands(compound)).toEqual(["cd src", "npm test", "tail -5"]);
  expect(decidePermission(allowCommands(...(listCommands(compound) as string[])), makeCommandCall(compound))).toBe(
    "allow",
  );
  // Only a command like the approved one may run afterwards.
  for (const [approved, ...others] of [
    ["timeout 5 true", "timeout 5 touch x", "timeout 5 true; timeout 5 touch x"],
    ["env FOO=1 true", "env FOO=1 touch x", "env FOO=1 true x"],
    ["rm -rf build", "rm -rf build /"],
    ["rm a", "rm a b"],
    ["mv a b", "mv a b c"],
    ["docker run image", "docker run image -v /:/host"],
    ["npm run lint", "npm run deploy"],
    ["make", "make install"],
    ["sudo rm x", "sudo rm x y", "sudo ls"],
    ["sh -c true", "sh -c 'touch x'", "sh -c true x"],
    ["python3 -c pass", "python3 -c pass 2"],
    // Known and unknown programs that run other programs, and programs whose further arguments could do anything.
    ["chrt 1 true", "chrt 1 sh -c 'touch x'", "chrt 1 true x"],
    ["tmux new true", "tmux new -d 'touch x'"],
    ["screen -dm true", "screen -dm true x"],
    ["go run x.go", "go run y.go", "go run x.go y"],
    ["uv run x", "uv run rm"],
    ["poetry run x", "poetry run rm"],
    ["deno run x.ts", "deno run -A y.ts"],
    ["conda run x", "conda run rm"],
    ["nix run x", "nix run y"],
    ["mise exec x", "mise exec rm"],
    ["direnv exec . x", "direnv exec . rm"],
    ["faketime now true", "faketime now rm x"],
    ["sg staff true", "sg staff 'touch x'"],
    ["git config alias.x y", "git config alias.x '!touch x'"],
    ["git submodule foreach true", "git submodule foreach 'touch x'"],
    ["tar xf a.tar", "tar xf a.tar --to-command=./x"],
    ["wrapper-of-tomorrow a", "wrapper-of-tomorrow rm"],
    ["npm run -s lint", "npm run -s deploy"],
    ["npm run lint", "npm run lint --script-shell=./x"],
    ["npm install x", "npm install y"],
    ["go test ./...", "go test ./... -exec ./x"],
    ["cargo test", "cargo test --config x"],
  ] as const) {
    const permissions = { default: "ask" as const, rules: [...makeRules(makeCommandCall(approved), "allow")] };
    expect([approved, decidePermission(permissions, makeCommandCall(approved))]).toEqual([approved, "allow"]);
    for (const other of others)
      expect([other, decidePermission(permissions, makeCommandCall(other))]).toEqual([other, "ask"]);
  }
  const commandsWithoutRule = [
    "echo a | sh",
    "a | bash -s x",
    "a | python3",
    "a | python3 -",
    "a | xargs rm",
    "nice -n 5 sh",
    "ssh host",
    "env",
    "sudo -i",
  ];
  for (const command of commandsWithoutRule) expect([command, listCommands(command)]).toEqual([command, []]);
  for (const prefix of ["git log", "git stash list", "ls"])
    expect(listCommands(`${prefix} --more`)).toEqual([prefix === "ls" ? "ls --more" : prefix]);
  // Arguments of scripts and unknown options could mean anything.
  const exact = "python3 tool.py|./check.sh all|git fetch|go test|cargo build|touch a".split("|");
  for (const one of exact) expect(listCommands(`${one} --more b`)).toEqual([`${one} --more b`]);
  expect(listCommands("npm run lint --quiet b; npm run lint --more b")).toEqual([
    "npm run lint",
    "npm run lint --more b",
  ]);
  // Each of these commands may be allowed separately, so a denial of their combination creates no rule.
  expect(listCommands(compound, "deny")).toEqual([]);
  expect(listCommands("rm -rf build", "deny")).toEqual(["rm -rf build"]);
  for (const command of ["a $(b)", "X=1 a", "a > b; c", "a &"]) expect(listCommands(command)).toEqual([]);
  expect(["git status", "a; b", "a\n", "", "a $b", "a > b"].map(isCommandPrefix)).toEqual([
    true,
    false,
    false,
    false,
    false,
    false,
  ]);
  expect(parsePlainCommands("a 'b c' \"d\"e; f")).toEqual([["a", "b c", "de"], ["f"]]);
});
