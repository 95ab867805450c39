// Approvals: what people see about a waiting call, and the calls that need no approval.
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Chat } from "#schema/chats/chat.ts";
import type { ChatApprovals } from "#schema/chats/chat-approval.ts";
import { Client } from "#src/client.ts";
import { listCommandTexts } from "#src/tools/processes/parsed-commands.ts";
import { seedUser } from "#test/support/seed.ts";
import { callTools, Follower, openChat, openToolWorld } from "./world.ts";

const makeEdit = (path: string, old_text: string, new_text: string) => ({
  files: [{ path, edits: [{ old_text, new_text }] }],
});

test("[PE-16] the owner sees a waiting call's diff against the current file, or its command, folder and suggested rules", async () => {
  await using world = await openToolWorld();
  const { owner, home } = world;
  writeFileSync(join(home, "sum.sh"), "one\ntwo\nthree\n");
  const { id, call } = await openChat(world, { permission_mode: "ask" });
  const path = `/api/v2/chats/${id}/permissions`;
  expect(await owner.get<ChatApprovals>(path)).toEqual({ calls: [] });
  using follower = await Follower.open(owner, id);
  call
    .callTool("edit", "edit_files", makeEdit("sum.sh", "two", "2"))
    .callTool("new", "write_file", { path: "src/new.ts", content: "const a = 1;\n" })
    .callTool("whole", "write_file", { path: join(home, "sum.sh"), content: "one\n" })
    .callTool("run", "execute", { command: "cd src && npm test 2>&1 | tail -5", workdir: "packages" })
    .callTool("mcp", "execute", { command: "git status -s; ls", workdir: "/tmp", run_in_background: true })
    .finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  const { calls } = await owner.get<ChatApprovals>(path);
  expect(calls.map(({ tool_call_id }) => tool_call_id)).toEqual(["edit", "new", "whole", "run", "mcp"]);
  expect(calls[0]?.files).toEqual([
    { path: "sum.sh", is_new: false, diff: "--- sum.sh\n+++ sum.sh\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n" },
  ]);
  expect(calls[1]?.files).toEqual([
    { path: "src/new.ts", is_new: true, diff: "--- /dev/null\n+++ src/new.ts\n@@ -0,0 +1,1 @@\n+const a = 1;\n" },
  ]);
  expect(calls[2]?.files?.[0]?.diff).toContain("-two\n-three\n");
  expect(calls[3]).toMatchObject({
    command: {
      folder: `${home}/packages`,
      parts: ["cd src", "npm test 2>&1", "tail -5"],
      in_background: false,
    },
    always: [],
  });
  expect(calls[4]).toMatchObject({
    command: { folder: "/tmp", parts: ["git status -s", "ls"], in_background: true },
    always: [
      { tool: "execute", command: "cd /tmp", action: "allow" },
      { tool: "execute", command: "git status", action: "allow" },
      { tool: "execute", command: "ls", action: "allow" },
    ],
  });
  // The diff follows the current file.
  writeFileSync(join(home, "sum.sh"), "zero\none\ntwo\n");
  expect((await owner.get<ChatApprovals>(path)).calls[0]?.files?.[0]?.diff).toContain(" zero\n one\n-two\n+2\n");
  writeFileSync(join(home, "sum.sh"), "something else\n");
  expect((await owner.get<ChatApprovals>(path)).calls[0]?.problem).toContain("is not in the file");
  expect(readFileSync(join(home, "sum.sh"), "utf8")).toBe("something else\n");
  expect(existsSync(join(home, "src"))).toBe(false);
  const administrator = new Client(world.server.url, (await seedUser(world.server, { roles: ["owner"] })).token);
  expect((await administrator.fetch("GET", path)).status).toBe(403);

  const answers = ["edit", "new", "whole", "run"].map((tool_call_id) => ({ tool_call_id, decision: "deny" }));
  const allowAlways = { tool_call_id: "mcp", decision: "allow", scope: "always" };
  await owner.post(path, { answers: [...answers, allowAlways] });
  await world.models.next();
  expect((await owner.get<Chat>(`/api/v2/chats/${id}`)).permissions).toEqual({
    default: "ask_changes",
    rules: [
      { tool: "execute", command: "cd /tmp", action: "allow" },
      { tool: "execute", command: "git status", action: "allow" },
      { tool: "execute", command: "ls", action: "allow" },
    ],
  });
  expect(await owner.get<ChatApprovals>(path)).toEqual({ calls: [] });
});

test("[PE-15] calls that cannot succeed fail without asking; in an unreachable workspace, calls still wait for approval", async () => {
  await using world = await openToolWorld();
  const { owner, home } = world;
  writeFileSync(join(home, "sum.sh"), "one\n");
  const { id, call } = await openChat(world, { permission_mode: "ask" });
  const { results, next } = await callTools(
    world,
    call,
    ["execute", { command: "" }],
    ["execute", {}],
    ["edit_files", makeEdit("sum.sh", "two", "2")],
    ["edit_files", makeEdit("missing.sh", "two", "2")],
    ["write_file", { path: ".", content: "x" }],
  );
  const errors = results.map(({ error }) => error);
  expect(errors).toEqual([
    expect.stringContaining("The arguments do not fit. command:"),
    expect.stringContaining("The arguments do not fit. command:"),
    expect.stringContaining("is not in the file"),
    expect.stringContaining("There is no such file"),
    expect.stringContaining("regular file"),
  ]);
  await world.daemon[Symbol.asyncDispose]();
  using follower = await Follower.open(owner, id);
  next.callTool("away", "edit_files", makeEdit("sum.sh", "two", "2")).finish("tool_calls");
  await follower.until(({ status }) => status === "requires_action");
  const [waitingCall] = (await owner.get<ChatApprovals>(`/api/v2/chats/${id}/permissions`)).calls;
  expect(waitingCall?.problem).toMatch(/cannot be reached|does not answer/);
});

test("[PE-16] a command is split by the shell's grammar, including nested substitutions", () => {
  expect(listCommandTexts("echo `rm x` $(ls a) && make")).toEqual(["echo `rm x` $(ls a)", "rm x", "ls a", "make"]);
  expect(listCommandTexts("x=`echo \\`date\\``")).toEqual(["x=`echo \\`date\\``", "echo `date`", "date"]);
  expect(listCommandTexts('for f in *; do rm "$f"; done')).toEqual(['rm "$f"']);
  expect(listCommandTexts("if true; then")).toEqual([]);
});
