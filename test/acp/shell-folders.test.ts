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
    ["cd -P -- 'a b'; cd /tmp", "a b", "/tmp"],
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
    ].map((one) => [one, UNKNOWN_FOLDER] as const),
    ["echo 'unclosed", UNKNOWN_FOLDER],
    [`cd ${"x".repeat(2_000)}`, UNKNOWN_FOLDER],
    [Array.from({ length: 20 }, (_, index) => `cd x${index}`).join(";"), UNKNOWN_FOLDER],
  ] as const)
    expect([command, listAfter(command)]).toEqual([command, folders]);
  expect(listAfter("cd a", "cd b", "cd a")).toEqual(["a", "b"]);
  expect(listAfter(...Array.from({ length: 300 }, () => "cd a"))).toEqual(["a"]);
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
