// Shell text in a workspace that cannot keep programs from writing: read-only commands run, everything else is refused.
import { expect, test } from "bun:test";
import { decidePermission } from "#src/tools/permission.ts";
import { execute } from "#src/tools/processes/execute.ts";
import { findHandoverReason } from "#src/tools/processes/handover-programs.ts";
import { findWriteReason } from "#src/tools/processes/read-only-commands.ts";
import { type ToolContext, ToolError } from "#src/tools/tool.ts";

test.each([
  "cat a.txt b.txt | grep -n 'x > y' | sort -u | head -3",
  "cd src && ls; cd .. && cat a",
  "git log --oneline -5 && git diff HEAD~1 -- .",
  "cd . && git status",
  'for f in a b; do [ -f "$f" ] && [ "$(head -c1 $f)" = x -a ! -L "$f" ] && test -n "$f"; done',
  "printf '%s\\n' a; echo ${x:-a} ${HOME%/*} ${#x} \"${x/a/b}\" $1",
  "for f in *; do printf '%s: %-5.3s\\n' \"$f\" $f; printf '%s' -v x; done",
  '[[ -f x ]] && cat x; if [[ $a == b* ]] || [[ ! -n "$c" ]]; then ls; fi\n[[ x -nt y ]]',
  "[[ $(head -1 a) =~ ^x.*y$ ]] && echo `[[ -d a ]] && ls`",
  "find . -name '*.ts' -type f 2>/dev/null | wc -l",
  "if [ -f a ]; then cat a; else echo no >&2; fi",
  "for f in a b; do head -1 $f; done",
  "rg -n 'rm -rf' --type ts; ls -la > /dev/null 2>&1",
  "echo $(git rev-parse HEAD) < a",
])("[PM-7] only reads: %s", (command) => expect(findWriteReason(command)).toBeUndefined());

test.each([
  "echo x > a",
  "cat a >> b",
  "ls >| a",
  "cat < a <> b",
  "rm a",
  "ls; touch a",
  "ls && $(echo rm) a",
  "cat $(rm a)",
  "PATH=. ls",
  "PATH=.",
  "$SHELL -c 'rm a'",
  "sh -c ls",
  "./cat a",
  "/tmp/cat a",
  "find . -delete",
  "find . -exec rm {} +",
  "find . $ARGS",
  "sort -o a b",
  "sort -uo a b",
  "git -c alias.x='!rm a' x",
  "git checkout .",
  "git log --output=a",
  "git grep --open=./e x",
  "sort --outp a b",
  "git $VERB",
  "rg --pre ./x y",
  "tree -o a",
  "ls() { rm a; }; ls",
  "{ ls; } > a",
  "(ls) &> a",
  "xargs rm",
  "echo 'unclosed",
  `echo ${"a".repeat(7_000)}`,
])("[PM-7] may write: %s", (command) => expect(findWriteReason(command)).toBeString());

// Bash runs the substitutions in these texts although they are in quotes, or programs from a folder that the text names.
test.each([
  "test -v 'a[$(touch x)]'",
  "[ -v 'a[$(touch x)]' ]",
  "test -f x -o -v 'a[$(touch x)]'",
  "test 'a[$(touch x)]' -eq 1",
  "for o in -v; do test \"$o\" 'a[x]'; done",
  "[ $(cat a) ]",
  '[ "$x" "$(cat a)" ]',
  "printf -v 'a[$(touch x)]' x",
  "printf -vPATH .; ls",
  "printf $x a",
  "for f in 'a[x]'; do printf '%d' $f; printf '%*s' $f; done",
  "printf -- $f x",
  'printf "-v" $f x',
  "printf '%(%s)T' $f",
  "printf '%d' 'a[`touch x`]'",
  "[[ 'a[$(touch x)]' -eq 0 ]]",
  "[[ -v 'a[$(touch x)]' ]]",
  "[[ -R 'a[$(touch x)]' ]]",
  "[[ -t $x ]]",
  "[[ ! $x -lt 1 ]]",
  "[[ -n 'a[$(touch x)]' ]]",
  "[[ $(touch x) == a ]]",
  "[[ -n ${x['$(touch x)']} ]]",
  "[[ -n *(#qe:'touch x':) ]]",
  // Shells without `[[` run the words after these operators and line breaks as a program.
  "[[ a == b || rm == x ]]",
  "[[ a && ! rm == x ]]",
  "[[ ( rm == x ) ]]",
  "[[ a > x ]]",
  "[[ a =~ a|rm ]]",
  "[[ a == b;rm ]]",
  "[[\nrm == x ]]",
  "[[ ! \nrm == x ]]",
  "echo '[[ a == b  ]]' `echo \\`[[\nrm == x ]]\\``",
  "while [[ 'a[$(touch x)]' -gt 0 ]]; do true; done",
  "for i in 'a[$(touch x)]'; do [[ $i -eq 0 ]]; done",
  "for i in 'a[$(touch x)]'; do echo $((i)); done",
  "(( 'a[$(touch x)]' ))",
  "for ((i=0; i<a['$(touch x)']; i++)); do true; done",
  "echo $(( a['$(touch x)'] ))",
  "echo $[ a['$(touch x)'] ]",
  "echo ${a['$(touch x)']}",
  "echo \"${!x['$(touch x)']}\"",
  "echo ${!x}",
  "echo ${x:'a[$(touch x)]':1}",
  "echo ${x:0:'a[$(touch x)]'}",
  "for x in '$(touch x)'; do echo \"${x@P}\"; done",
  "echo \"${x:='$(touch x)'}\"",
  "echo ${(e)x}",
  "cat <<E\n${a['$(touch x)']}\nE",
  "cat <<< ${a['$(touch x)']}",
  "for PATH in .; do ls; done",
  "for path in .; do ls; done",
  "select PATH in .; do ls; done",
  "ls {PATH}< a",
  "ls *(e:'touch x':)",
  "ls *.(e:x:)",
  "echo $(cat 'a)",
  "echo $(if)",
])("[PM-7] the shell itself may do more than read: %s", (command) => expect(findWriteReason(command)).toBeString());

const HANDOVERS = [
  ...["tmux new-session -d 'touch x'", "screen -dm touch x", "zellij run touch x", "dtach -n s touch x", "at now"],
  ...["docker run -v /:/x alpine touch /x/f", "podman ps", "emacsclient -e 1", "systemd-run --user touch x", "batch"],
  ...[
    "dbus-send --session x",
    "busctl --user call x",
    "crontab -l",
    "ls; /usr/bin/tmux ls",
    "env tmux ls",
    "a $(tmux ls)",
  ],
  ...["nohup /usr/bin/docker ps", "./gradlew build", "timeout 5 docker run x", "env A=b tmux new -d x"],
  ...["sudo -u root env -u X nice -n 5 docker ps", "ls | xargs -I {} -n1 docker rm {}", "command -p tmux ls"],
  ...["timeout -s KILL 1.5m tmux ls", "sh -c 'tmux new -d x'", 'ls; bash -euo pipefail -c "ls && (docker ps)"'],
  ...["curl --unix-socket /var/run/docker.sock http://x/containers/json", "curl -s --unix-s=/run/x.sock http://x"],
  ...["sudo curl -X POST --abstract-unix-socket x http://x", "curl -sSK plan.md http://x", "curl --config plan.md"],
  ...["curl -d '{}' http://127.0.0.1:2375/containers/create", "wget -qO- docker:2375/info", "xh --unix-socket x /"],
  ...["echo x | nc -NU /tmp/tmux.sock", "ncat --unixsock x", "socat - UNIX-CONNECT:/run/docker.sock"],
  ...["nvim --headless --server /tmp/n.sock --remote-send x", "ssh localhost touch x", "ssh -p 22 me@127.0.0.1 ls"],
  ...["scp a localhost:b", "rsync a ssh://me@localhost/b", "pm2 start x", "supervisorctl restart x"],
  ...["env bash -lc 'exec tmux'", `${"ls; ".repeat(100)}tmux ls`],
];

test.each(HANDOVERS)("[PM-7] may let another program write: %s", (command) =>
  expect(findWriteReason(command)).toBeString(),
);

test.each(HANDOVERS)("[PM-6] is refused also where Landlock restricts programs: %s", async (command) => {
  const agent = { call: () => Promise.reject(new Error("It asked the agent.")) };
  const context = { agent, writable_only: [], run_id: "1", clock: { monotonic: () => 0 } } as unknown as ToolContext;
  const run = execute.run(context, { command }, new AbortController().signal);
  await expect(run).rejects.toThrow("lets another program do the work");
});

const NO_HANDOVERS = [
  ...["find docker -name Dockerfile", "command -v docker", "command -V tmux", "env -i cat docker", "sudo -u docker ls"],
  ...[
    "curl -sL http://localhost:3000/api",
    "curl -H 'Key: x' --user a:b --compressed http://x",
    "wget -q http://x:23750/",
  ],
  ...["nc -z localhost 3000", "nc -vzw 5 x 22", "vim --version", "ssh build journalctl", "scp host:log /dev/stdout"],
  ...["curl --connect-timeout 5 --anyauth http://x/a:2375", "grep -r unix-socket .", "man curl"],
  ...["sh docker/build.sh -c", "bash -c 'ls docker'", "env", "timeout 5", 'bash -c "$x" tmux'],
];

test("[PM-6] text that is too long to be checked is refused", () =>
  expect(findHandoverReason(`echo ${"a".repeat(6_000)}`)).toContain("too long"));

test("[PM-6] only programs that hand work over are refused by name", () => {
  for (const command of ["grep -r tmux .", "cat docker", "ls | at-spi", "npm test", "echo 'tmux", ...NO_HANDOVERS])
    expect([command, findHandoverReason(command)]).toEqual([command, undefined]);
});

test("[PM-7] git reads only in the chat's folder: a repository in another folder may configure programs that git runs", () => {
  const folder = "/home/me/app";
  for (const command of [
    "cd docs/fixture && git status",
    "cd docs/fixture; ls | cat; git log",
    "(cd a && git diff); ls",
    "echo $(cd a; git status)",
    "cd && git status",
    'cd "$x" && git rev-parse HEAD',
    "cd -P /home/me/app && git status",
    "cd /home/me/app/.. && git status",
    "for f in a b; do cd $f; git show; done",
    "for f in a b; do git show; cd $f; done",
    "while [ -f x ]; do if git show; then cd a; fi; done",
    "for f in $(cd a; git log); do ls; done",
    "(git log; cd a; git log); ls",
    "cd a; (git log)",
    "cd a; cat $(git ls-files)",
    "cd a | cat; git log",
    "false || { cd a; }; git log",
    "cd a; false && cd /home/me/app; git log",
    "cd a; git -C /home/me/app log",
    "@agent dev && git log",
  ])
    expect([command, findWriteReason(command, folder)]).toEqual([command, expect.stringContaining("another folder")]);
  for (const command of [
    "cd /home/me/app/ && git status",
    "git log --oneline | head -5; git status && cd docs && ls",
    "(cd docs && ls); git log; echo $(cd docs; pwd)",
    "for f in a b; do (cd $f && ls); git log -1 -- a; done",
    "git --no-pager log && git -P -C /home/me/app --no-optional-locks diff && git -C . show",
  ])
    expect([command, findWriteReason(command, folder)]).toEqual([command, undefined]);
  for (const command of ["git -C docs log", "git -C $x log", "git --no-pager checkout .", "git --no-pager -c a=b log"])
    expect([command, findWriteReason(command, folder)]).toEqual([command, expect.any(String)]);
  expect(findWriteReason("cd /home/me/app/ && git status")).toContain("another folder");
});

test("[PM-7] where nothing holds programs back, git runs in the chat's own folder, and in no other one", async () => {
  const folder = "/home/me/app";
  const started: unknown[] = [];
  const agent = {
    call: async ({ path, json }: { path: string; json?: { command: string } }) => {
      if (path === "/processes/limits") return { can_hold_back: false };
      started.push(json?.command);
      throw new ToolError("It was started.");
    },
  };
  const run = (args: object, more: Partial<ToolContext>) => {
    const context = { agent, writable_only: [], run_id: "1", clock: { monotonic: () => 0 }, ...more };
    return execute.run(context as unknown as ToolContext, args, new AbortController().signal);
  };
  const loadFolder = async () => folder;
  const elsewhere = "in another folder";
  for (const [args, more, message] of [
    [{ command: "git status" }, {}, "It was started."],
    [{ command: "git status", workdir: "." }, { loadFolder }, "It was started."],
    [{ command: "git status", workdir: `${folder}/` }, { loadFolder }, "It was started."],
    [{ command: `cd ${folder} && git log` }, { loadFolder }, "It was started."],
    [{ command: "ls", workdir: "docs" }, { loadFolder, agent_name: "dev" }, "It was started."],
    [{ command: "git status", workdir: "docs/fixture" }, { loadFolder }, elsewhere],
    [{ command: "git status", workdir: folder }, {}, elsewhere],
    [{ command: "git status" }, { loadFolder, agent_name: "dev" }, elsewhere],
    [{ command: "git status", workdir: folder }, { loadFolder, agent_name: "dev" }, elsewhere],
  ] as const)
    await expect(run(args, more)).rejects.toThrow(message);
  expect(started).toHaveLength(5);
});

test("[PM-7] git in the folder of another agent asks, and other reading programs do not", () => {
  const decide = (command: string, args: object) =>
    decidePermission(
      { default: "ask_changes", rules: [] },
      { tool_name: "execute", args: { command, ...args } },
      { use: "read_only", folder: "/home/me/app" },
    );
  expect(decide("git status", {})).toBe("allow");
  expect(decide("git status", { agent: "dev" })).toBe("ask");
  expect(decide("git status", { agent: "dev", workdir: "/home/me/app" })).toBe("ask");
  expect(decide("ls", { agent: "dev" })).toBe("allow");
});

test("[PM-7] a workspace that cannot restrict programs runs only read-only commands", async () => {
  const requests: string[] = [];
  const agent = {
    call: async ({ path }: { path: string }) => {
      requests.push(path);
      return { can_hold_back: false };
    },
  };
  const context = { agent, writable_only: [], run_id: "1", clock: { monotonic: () => 0 } } as unknown as ToolContext;
  const run = execute.run(context, { command: "rm a" }, new AbortController().signal);
  await expect(run).rejects.toThrow('cannot hold them back: "rm" is not one of the programs that only read');
  expect(requests).toEqual(["/processes/limits"]);
});
