// The folders that a coding agent's shell may have kept from earlier commands, and what they change in decisions.
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decideAgentCall } from "#actors/chat/acp/call-decision.ts";
import { ShellFolders } from "#actors/chat/acp/shell-folders.ts";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatApprovals } from "#schema/chats/chat-approval.ts";
import { type AgentToolCall, toChatTool } from "#src/acp/calls.ts";
import { decidePermission, makeRules } from "#src/tools/permission.ts";
import { UNKNOWN_FOLDER } from "#src/tools/permission-mode.ts";
import { makeChatSteps, openAgentWorld, readAgentLog, startAgentChat } from "#test/support/acp/agent-world.ts";
import { forFile } from "#test/support/for-file.ts";

const OWN = "/home/me/app";
const makeCall = (id: string, command: string, more: Partial<AgentToolCall> = {}): AgentToolCall => ({
  id,
  title: "run",
  kind: "execute",
  status: "pending",
  content: [],
  paths: [],
  raw_input: { command },
  raw_output: undefined,
  ...more,
});
const listAfter = (...commands: string[]): readonly string[] => {
  const shell = new ShellFolders(OWN);
  for (const [index, command] of commands.entries()) shell.record(makeCall(String(index), command));
  return shell.listKeptFolders("next", "sh build.sh");
};

test("[CA-34] lists the folders to which earlier commands may have changed", () => {
  for (const [command, ...folders] of [
    ["ls; npm test | cat"],
    ["(cd src && npm test); echo $(cd a; pwd) `cd b`"],
    [`cd ${OWN}/ && git log; cd .`],
    ["git -C src log; sh -c 'cd x'; echo cd x"],
    ["cd src && ls", "src"],
    ["(cd x)"],
    ["# a note"],
    ["cd -L -- 'a b'; cd /tmp", "a b", "/tmp"],
    ["if true; then { cd src; }; fi", "src"],
    ["ls && cd", "~"],
    ["cd ~/x", "~/x"],
    ...[
      "cd -",
      'cd "$x"',
      "cd $(git rev-parse --show-toplevel)",
      "pushd src",
      "eval 'cd x'",
      "$x src",
      "command cd x",
      "cd -P src",
    ].map((one) => [one, UNKNOWN_FOLDER] as const),
    ["echo 'unclosed", UNKNOWN_FOLDER],
    [`cd ${"x".repeat(2_000)}`, UNKNOWN_FOLDER],
    [Array.from({ length: 20 }, (_, index) => `cd x${index}`).join(";"), UNKNOWN_FOLDER],
  ] as const)
    expect([command, listAfter(command)]).toEqual([command, folders]);
  expect(listAfter("cd a", "cd ./b/", "cd a")).toEqual(["a", "./b/", "a/b", "b/a"]);
  expect(listAfter(...Array.from({ length: 300 }, () => "cd a"))).toEqual(["a"]);
});

test("[CA-34] a relative folder is one of each folder in which the shell may be", () => {
  expect(listAfter("cd a && cd b")).toEqual(["a", "b", "a/b"]);
  // A link may make `a/..` another folder than the first one.
  expect(listAfter("cd a", "cd ..")).toEqual(["a", "..", "a/.."]);
  expect(listAfter("cd ..", "cd ..")).toEqual(["..", "../.."]);
  expect(listAfter("cd /tmp", "cd ~/x", "cd a")).toEqual(["/tmp", "~/x", "a", "/tmp/a", "~/x/a"]);
  expect(listAfter('cd "$x"', "cd a")).toEqual([UNKNOWN_FOLDER, "a"]);
  expect(listAfter("cd a", "cd b", "cd c", "cd d", "cd e")).toEqual([UNKNOWN_FOLDER]);

  const listAfterCall = (command: string, cwd: string) => {
    const shell = new ShellFolders(OWN);
    shell.record(makeCall("1", "cd kept"));
    shell.record(makeCall("2", "", { raw_input: { command, cwd } }));
    return shell.listKeptFolders("next", "ls");
  };
  expect(listAfterCall("cd ..", "/x/y")).toEqual(["kept", "/x/y/.."]);
  expect(listAfterCall("cd .", "/x")).toEqual(["kept", "/x"]);
  expect(listAfterCall("cd a", "docs")).toEqual(["kept", "docs/a"]);
  expect(listAfterCall("cd a", OWN)).toEqual(["kept", "a", "kept/a"]);
  expect(listAfterCall("ls", "/x")).toEqual(["kept"]);
});

test("[CA-34] a loaded script may change the folder until the shell goes back to its first one", () => {
  for (const script of ["source env.sh", ". ./env.sh", "command . env.sh", '. "$x"', "source /tmp/x.sh"]) {
    expect([script, listAfter(script)]).toEqual([script, [UNKNOWN_FOLDER]]);
    expect([script, listAfter(script, `cd '${OWN}' && npm test`)]).toEqual([script, []]);
    expect([script, listAfter(script, `cd ${OWN}/`)]).toEqual([script, []]);
    for (const other of ["cd /x && ls", `(cd ${OWN})`, `ls; cd ${OWN}`])
      expect([script, other, listAfter(script, other)[0]]).toEqual([script, other, UNKNOWN_FOLDER]);
  }
  for (const script of [
    ". .venv/bin/activate && pytest",
    "source venv/bin/activate",
    "source '/srv/my env/bin/activate'",
    ". ~/.nvm/nvm.sh && npm test",
    '. "$HOME/.cargo/env"',
    'source "$NVM_DIR/nvm.sh"',
  ])
    expect([script, listAfter(script)]).toEqual([script, []]);

  // A change to the first folder counts only for calls that come later.
  const shell = new ShellFolders(OWN);
  shell.record(makeCall("1", ". env.sh"));
  shell.record(makeCall("2", "sh build.sh"));
  shell.record(makeCall("3", `cd ${OWN} && ls`));
  expect(shell.listKeptFolders("2", "sh build.sh")).toEqual([UNKNOWN_FOLDER]);
  expect(shell.listKeptFolders("4", "sh build.sh")).toEqual([]);
});

test("[CA-34] nothing is known after a command that makes others change the folder", () => {
  const back = `cd ${OWN} && ls`;
  for (const command of [
    "trap 'cd x' DEBUG",
    'trap "$x" USR1',
    "builtin trap -- '. x.sh' ERR",
    "alias sh='cd x; sh'",
    "alias cd=x",
    "cd() { x; }",
    "function cd { x; }",
    "CDPATH=x",
    "export CDPATH=x",
    "PROMPT_COMMAND='cd x'",
    "shopt -s autocd",
    "set -P",
    "enable -n cd",
    "mapfile -C 'cd x' lines",
  ]) {
    expect([command, listAfter(command, back)]).toEqual([command, [UNKNOWN_FOLDER]]);
    const shell = new ShellFolders(OWN);
    shell.record(makeCall("1", command));
    expect([command, shell.listKeptFolders("2", back)]).toEqual([command, [UNKNOWN_FOLDER]]);
  }
  for (const command of [
    "trap 'rm -rf x; cd y' EXIT",
    'trap "kill $x" EXIT',
    "trap 'kill $x' INT TERM",
    "trap - DEBUG",
    "alias ll='ls -l'",
    "set -euo pipefail; shopt -s globstar",
    "(trap 'cd x' DEBUG)",
    "grep -rn 'cd()' .; python3 -c 'ftp.cd()'",
  ])
    expect([command, listAfter(command)]).toEqual([command, []]);
});

test("[CA-34] calls that did not run, terminals, and commands with a folder of their own are not affected", () => {
  const shell = new ShellFolders(OWN);
  const terminal = { type: "terminal", terminalId: "1" } as const;
  shell.record(makeCall("terminal", "cd a", { content: [terminal] }));
  shell.record(makeCall("read", "cd b", { kind: "read" }));
  shell.record(makeCall("refused", "cd c"));
  shell.refuse("refused");
  shell.record(makeCall("refused", "cd c"));
  expect(shell.listKeptFolders("next", "ls")).toEqual([]);
  shell.record(makeCall("1", "cd src && npm test"));
  expect(toChatTool(makeCall("1", "cd src && npm test"), shell).args).toEqual({ command: "cd src && npm test" });
  expect(toChatTool(makeCall("2", "ls"), shell).args).toEqual({ command: "ls", shell_folders: ["src"] });
  for (const cwd of [OWN, "docs"])
    expect(
      toChatTool(makeCall("2", "", { raw_input: { command: "ls", cwd } }), shell).args.shell_folders,
    ).toBeUndefined();
  for (const command of [`cd ${OWN} && git log 2>&1 | head`, 'cd "/a b" && ls && pwd'])
    expect([command, shell.listKeptFolders("2", command)]).toEqual([command, []]);
  for (const command of [
    "cd /x && ls; sh build.sh",
    "cd /x && ls || ls",
    "cd /x; ls",
    "cd x && ls",
    'cd "/$x" && ls',
    "cd /x & ls",
  ])
    expect([command, shell.listKeptFolders("2", command)]).toEqual([command, ["src"]]);
});

test("[CA-34] rules and plan mode decide about a command in each of the folders", () => {
  const decide = (args: object, ...allowed: string[]) =>
    decidePermission(
      { default: "ask", rules: allowed.map((command) => ({ tool: "execute", command, action: "allow" })) },
      { tool_name: "execute", args },
      { use: "yes", folder: OWN },
    );
  const args = { command: "sh build.sh", shell_folders: ["src"] };
  expect(decide(args, "sh build.sh")).toBe("ask");
  expect(decide(args, "sh build.sh", "cd src")).toBe("allow");
  const makeTexts = (one: object) =>
    makeRules({ tool_name: "execute", args: one }, "allow").map((rule) => rule.command);
  expect(makeTexts(args)).toEqual(["cd src", "sh build.sh"]);
  expect(makeTexts({ ...args, shell_folders: [UNKNOWN_FOLDER] })).toEqual([]);

  const chat = { plan_mode: "plan", workspace_id: "1" } as unknown as Parameters<typeof decideAgentCall>[1]["chat"];
  const plan = (command: string, shell_folders: readonly string[]) =>
    decideAgentCall("1", { chat, permissions: null }, { tool_name: "execute", args: { command, shell_folders } }, OWN);
  expect(plan("git status", []).action).toBe("allow");
  expect(plan("cat a", ["docs/fixture"]).action).toBe("allow");
  expect(plan("git status", ["docs/fixture"])).toEqual({
    action: "deny",
    why: expect.stringContaining(
      `The shell may still be in "docs/fixture". To run git, begin with \`cd '${OWN}' && \``,
    ),
  });
});

const world = await forFile(openAgentWorld());
const { waitForStatus, answer } = makeChatSteps(world);

test("[CA-34] an allowed command asks after another one changed the folder, and the question names both", async () => {
  const { home, owner } = world;
  mkdirSync(join(home, "kept"));
  writeFileSync(join(home, "build.sh"), "echo built\n");
  const rule = { tool: "execute", command: "sh build.sh", action: "allow", exact: true };
  const permissions = { default: "ask_changes", rules: [rule] };
  const prompt = "run sh build.sh\nfree cd kept && ls\nrun sh build.sh\nrun sh build.sh\nsay done";
  const { id } = await startAgentChat(world, prompt, { permissions });
  await waitForStatus(id, "requires_action");
  expect(readAgentLog(world, id).filter((line) => line.startsWith("answered"))).toEqual(["answered yes"]);
  const { calls } = await owner.get<ChatApprovals>(`/api/v2/chats/${id}/permissions`);
  expect(calls.map(({ args }) => JSON.parse(args))).toEqual([{ command: "sh build.sh", shell_folders: ["kept"] }]);
  const folder = calls[0]?.command?.folder ?? "";
  expect(folder.split(" or ")).toEqual([expect.any(String), `${folder.split(" or ")[0]}/kept`]);
  await answer(id, "allow", { scope: "always" });
  await waitForStatus(id, "waiting");
  const chat = await owner.get<Chat>(`/api/v2/chats/${id}`);
  expect(chat.permissions?.rules.map(({ command }) => command)).toEqual(["cd kept", "sh build.sh"]);
  expect(readAgentLog(world, id).filter((line) => line === "answered yes")).toHaveLength(3);
});
