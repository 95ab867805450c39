// How calls of a coding agent appear in a chat. Needs no server.
import { expect, test } from "bun:test";
import { type AgentToolCall, toChatTool } from "#src/acp/calls.ts";

const readCommand = (rawInput: object, folder?: string) => {
  const call = {
    id: "1",
    title: "run",
    kind: "execute",
    status: "pending",
    content: [],
    paths: [],
    raw_input: rawInput,
  };
  const shell = folder === undefined ? undefined : { folder, listKeptFolders: () => [] };
  return toChatTool(call as unknown as AgentToolCall, shell).args;
};

test("[CA-1] a list of words is shown as the script of a shell only if its program is a shell of the system", () => {
  for (const shell of ["sh", "bash", "zsh", "/bin/sh", "/usr/bin/bash"])
    expect(readCommand({ command: [shell, "-lc", "git status"] })).toEqual({ command: "git status" });
  for (const program of ["./evil.sh", "./tools/bash", "tools/sh", "/tmp/bash", "bash5", "Bash", "evil\nbash"])
    expect(readCommand({ command: [program, "-c", "git status"] }).command).toContain("-c 'git status'");
});

test("[CA-1] a command's folder is shown unless it is the agent's own", () => {
  expect(readCommand({ command: "ls", cwd: "/home/me/" }, "/home/me")).toEqual({ command: "ls" });
  expect(readCommand({ command: "ls", cwd: "/home/me/docs" }, "/home/me")).toEqual({
    command: "ls",
    workdir: "/home/me/docs",
  });
  expect(readCommand({ command: "ls", cwd: "/home/me" })).toEqual({ command: "ls", workdir: "/home/me" });
});
