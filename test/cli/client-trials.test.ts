// Trying several variants of a response on the command line, in forks of a real local workspace.
import { expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "#src/client.ts";
import { createChat } from "#test/support/chats.ts";
import { addWritingModel, startWritingModel } from "#test/support/models/writing-model.ts";
import { testSingleServer } from "#test/support/one-server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { until } from "#test/support/until.ts";
import { awaitBuild, createWorkspace } from "#test/support/workspaces.ts";
import { openClientWorld, readToken, signInAs } from "./client-world.ts";

const test = testSingleServer("local");

const LOCAL = "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n";

test("[CV-47] `slipway chat try` runs variants and waits for them, `ways` shows them and their diffs, `keep` keeps one", async () => {
  await using models = await startWritingModel();
  await using world = await openClientWorld();
  await signInAs(world);
  const admin = new Client(world.server.url, readToken(world));
  await addWritingModel(admin, models);
  const { id, organization_id } = await createWorkspace(admin, (await makeTemplate(admin, LOCAL)).id);
  await awaitBuild(admin, id);
  const answerFile = join(world.server.directory, "workspaces", id, "home", "answer");
  writeFileSync(answerFile, "none\n");
  const chat = await createChat({ owner: admin, organization_id }, "hello", { workspace_id: id });
  await until(async () => (await admin.get<{ status: string }>(`/api/v2/chats/${chat.id}`)).status === "waiting");
  const run = (...args: string[]) => world.run(["chat", ...args]);
  expect(await run("ways", chat.id)).toMatchObject({ code: 1, err: expect.stringContaining("no ways were tried") });
  expect(await run("try", chat.id, "Write it", "--ways", "9")).toMatchObject({ code: 2 });
  const tried = await run(
    "try",
    chat.id,
    "Write it",
    "--ways",
    "2",
    "--check",
    "grep -q it answer",
    "--check-timeout",
    "1m",
  );
  expect(tried.code).toBe(0);
  expect(tried.out).toMatch(/^WAY +STATUS .*\n1 +passed +1 file, \+1 -1 +exit code 0 .*\n2 +passed /);
  expect(tried.err).toContain("Way 1: working\n");
  expect(tried.err).toContain(`Keep one of them with: slipway chat keep ${chat.id.slice(0, 8)} WAY`);
  expect((await run("ways", chat.id, "--diff", "2")).out).toContain("-none\n+it");
  expect(await run("keep", chat.id, "1")).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
  expect(readFileSync(answerFile, "utf8")).toBe("none\n");
  expect((await run("keep", chat.id, "2", "--yes")).out).toMatch(/^Kept way 2\. Its chat is [0-9a-f]{8}\.\n$/);
  expect(readFileSync(answerFile, "utf8")).toBe("it\n");
  expect((await run("ways", chat.id)).out).toContain("Kept way 2.");
});
