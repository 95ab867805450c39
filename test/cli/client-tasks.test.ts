// Tasks, secrets, groups, template access, budgets, dotfiles and schedules on the command line.
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Task } from "#schema/tasks/task.ts";
import { Client } from "#src/client.ts";
import { TEST_AGENT } from "#test/support/acp/agent-world.ts";
import { forFile } from "#test/support/for-file.ts";
import { until } from "#test/support/until.ts";
import { ECHO, seedTemplate } from "#test/support/workspaces.ts";
import { openClientWorld, readToken, signInAs } from "./client-world.ts";

const world = await forFile(openClientWorld());
await signInAs(world);
const admin = new Client(world.server.url, readToken(world));
await seedTemplate(world.server, ECHO, { name: "echo" });

const splitWords = (line: string): string[] => line.split(" ");
const run = (line: string) => world.run(splitWords(line));
const runOk = (line: string, stdin = "") => world.runOk(splitWords(line), { stdin });

test("[CV-29] tasks are created from arguments or a pipe, listed, shown, paused, resumed and deleted", async () => {
  await admin.post("/api/v2/chats/providers", { provider: "demo", display_name: "demo", enabled: true });
  const model = { provider: "demo", model: "demo", enabled: true, is_default: true };
  await admin.post("/api/v2/chats/model-configs", model);
  expect(await runOk("tasks create --template echo --name page", "Fix the page.\nIt is slow.\n")).toContain(
    "Created the task page; ",
  );
  const task = JSON.parse(await runOk("tasks status page --json")) as Task;
  expect(task).toMatchObject({ initial_prompt: "Fix the page.\nIt is slow.", name: "page" });
  expect(await runOk(`tasks status ${task.id}`)).toMatch(/^Task {10}page .*\nTitle {9}Fix the page\.\n/);
  expect(await runOk("tasks list")).toMatch(/^TASK +STATUS +CHANGED +MESSAGE\npage /);
  expect(await runOk("tasks logs page")).toBe("No messages yet.\n");
  expect(await run("tasks send page Hello")).toMatchObject({
    code: 1,
    err: expect.stringContaining("has not been delivered yet"),
  });
  expect((await run("tasks pause page")).code).toBe(0);
  expect(await runOk("tasks list status:paused")).toContain("page");
  expect(await runOk("tasks pause page")).toBe("page is already paused.\n");
  expect(await run("tasks send page Hello")).toMatchObject({ code: 1, err: expect.stringContaining("Resume it") });
  // The template creates no agent that connects, so only the build matters.
  expect((await run("tasks resume page --no-wait")).code).toBe(0);
  await until(async () => (JSON.parse(await runOk("tasks status page --json")) as Task).status !== "paused");
  expect(await run("tasks delete page")).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
  expect(await runOk("tasks delete page --yes")).toBe("page and its workspace are being deleted.\n");
  expect(await run("tasks status page")).toMatchObject({ code: 1, err: expect.stringContaining("no task page") });
  await admin.put<unknown>("/api/v2/ai/agents/mine", TEST_AGENT);
  expect(JSON.parse(await runOk("tasks create --template echo --name led --agent mine --json", "Go."))).toMatchObject({
    coding_agent: "mine",
  });
  expect(await runOk("tasks status led")).toMatch(/\nAgent {9}mine\n/);
  const chat = JSON.parse(await runOk("chat new Hello --workspace led --agent mine --no-wait --json"));
  expect(chat).toMatchObject({ coding_agent: "mine" });
  expect(await run("chat new Hello --agent mine")).toMatchObject({
    code: 2,
    err: expect.stringContaining("--workspace"),
  });
  expect(await run("tasks create --template echo --agent mine --model demo x")).toMatchObject({ code: 2 });
  expect(await run("tasks create --template echo --agent nothing x")).toMatchObject({
    code: 1,
    err: expect.stringContaining('There is no coding agent "nothing".'),
  });
  expect(await run("task list")).toMatchObject({ code: 2, err: expect.stringContaining("slipway tasks") });
});

test("[CV-30] a secret is read from a pipe, file or terminal, never printed, and can be changed and removed", async () => {
  expect(await runOk("secrets create registry --env REGISTRY --description Images", "hunter2-hunter2\n")).toContain(
    "registry created",
  );
  const file = join(world.home, "netrc");
  writeFileSync(file, "machine a\nlogin b\n");
  await runOk(`secrets create netrc --file ~/.netrc --value-file ${file}`);
  const listed = await runOk("secrets list");
  expect(listed).toMatch(/^NAME +VARIABLE +FILE +CHANGED +DESCRIPTION\nnetrc +- +~\/.netrc /);
  expect(listed).toMatch(/\nregistry +REGISTRY +- .* Images\n/);
  await using terminal = world.runOnTerminal("slipway secrets change registry");
  await terminal.until("Value: ");
  terminal.type("another-value\r");
  await terminal.until("registry changed");
  expect(await terminal.exited).toBe(0);
  expect(terminal.shown()).not.toContain("another-value");
  expect(await runOk("secrets change registry --env REGISTRY_TOKEN --json")).toContain('"env_name":"REGISTRY_TOKEN"');
  expect(await run("secrets create path --env PATH --value-file /dev/null")).toMatchObject({ code: 2 });
  expect(await runOk("secrets remove registry")).toBe("registry is removed.\n");
  expect(await run("secrets remove registry")).toMatchObject({ code: 1, err: expect.stringContaining("no secret") });
});

test("[CV-31] groups are created, filled, edited and deleted, and given access to a template", async () => {
  for (const name of ["gina", "gus"]) await runOk(`users create ${name} --email ${name}@example.com`);
  expect(await runOk("groups create makers --display-name Makers --quota 5")).toContain("Created makers; ");
  expect(await runOk("groups members makers")).toBe("No members.\n");
  expect(await runOk("groups members makers --add gina --add gus@example.com")).toMatch(
    /^USERNAME +NAME +EMAIL +STATUS\ngina .*\ngus /,
  );
  expect(await runOk("groups members MAKERS --remove gus")).not.toContain("gus");
  expect(await runOk("groups edit makers --quota 7")).toContain("Quota         7 credits per day");
  expect(await runOk("groups list")).toMatch(/\nmakers +Makers +1 +7\n/);
  expect(await run("groups edit makers")).toMatchObject({ code: 2 });
  expect(await run("groups edit makers --quota lots")).toMatchObject({ code: 2 });

  expect(await runOk("templates access echo")).toMatch(/^KIND +NAME +ROLE\ngroup +Everyone +use\n/);
  const access = await runOk("templates access echo --remove-group Everyone --group makers:admin --user gus");
  expect(access).toBe("KIND   NAME    ROLE\ngroup  makers  admin\nuser   gus     use\n");
  expect(await run("templates access echo --user unknown")).toMatchObject({ code: 1 });
  expect(await run("templates access echo --user gus --remove-user gus")).toMatchObject({ code: 2 });
  await runOk("templates access echo --remove-user gus --group Everyone");

  expect(await run("groups delete makers")).toMatchObject({ code: 2, err: expect.stringContaining("--yes") });
  expect(await runOk("groups delete makers --yes")).toBe("makers is deleted.\n");
  expect(await run("groups members makers")).toMatchObject({ code: 1, err: expect.stringContaining("no group") });
});

test("[CV-45] budgets are set, listed, replaced and removed by their scope and its name", async () => {
  expect(await runOk("budgets set everyone --amount 500")).toBe("The monthly budget of everyone is $500.00.\n");
  expect(await runOk("budgets set everyone --amount 20.50")).toBe("The monthly budget of everyone is $20.50.\n");
  expect(await runOk("budgets set organization default --amount 90000 --unit tokens --per day")).toMatch(
    /^The daily budget of the organization ".+" is 90,000 tokens\.\n$/,
  );
  expect(await runOk("budgets list")).toMatch(
    /^BUDGET +USED +AMOUNT +RESETS\nThe monthly budget of everyone +\$0\.00 +\$20\.50 +\d{4}-\d\d-01\n.+90,000 tokens/,
  );
  expect(await runOk("budgets set everyone --remove")).toBe("Removed the monthly budget of everyone.\n");
  expect(await run("budgets set everyone --remove")).toMatchObject({
    code: 1,
    err: expect.stringContaining("doesn't exist"),
  });
  for (const args of ["", "unknown", "everyone", "everyone ada", "user", "user ada --amount -1", "user ada --amount x"])
    expect([args, (await run(`budgets set ${args}`)).code]).toEqual([args, 2]);
  expect(await run("budgets set user unknown --amount 1")).toMatchObject({ code: 1 });
  expect(await run("budgets set template nothing --amount 1")).toMatchObject({ code: 1 });
});

test("[CV-48] `account dotfiles` shows, sets and removes the account's dotfiles", async () => {
  expect(await runOk("account dotfiles")).toStartWith("Your workspaces install no dotfiles.");
  expect(
    await runOk("account dotfiles https://git.example.com/ada/dotfiles --branch main --install-command ./go"),
  ).toBe("Your workspaces install https://git.example.com/ada/dotfiles (main) with ./go at each start.\n");
  expect(JSON.parse(await runOk("account dotfiles --json"))).toEqual({
    url: "https://git.example.com/ada/dotfiles",
    branch: "main",
    install_command: "./go",
  });
  expect(await run("account dotfiles nowhere")).toMatchObject({
    code: 1,
    err: expect.stringContaining("must be the address of a Git repository"),
  });
  for (const args of ["--branch main", "a b", "a --remove"])
    expect([args, (await run(`account dotfiles ${args}`)).code]).toEqual([args, 2]);
  expect(await runOk("account dotfiles --remove")).toStartWith("Your workspaces install no dotfiles.");
});

test("[CV-32] quiet hours are set by time, and prebuilds are paused and resumed", async () => {
  expect(await runOk("schedule quiet")).toStartWith("Required stops happen at 00:00 (UTC), the default");
  expect(await runOk("schedule quiet 10pm Europe/Paris")).toStartWith(
    "Required stops happen at 22:00 (Europe/Paris); next",
  );
  expect(await run("schedule quiet 22:00 Mon-Fri")).toMatchObject({
    code: 1,
    err: expect.stringContaining("every day"),
  });
  expect(JSON.parse(await runOk("schedule quiet off --json"))).toMatchObject({ user_set: false });
  expect(await runOk("prebuilds pause")).toBe("Prebuilt workspaces are paused.\n");
  expect(await runOk("prebuilds status --json")).toBe('{"reconciliation_paused":true}\n');
  expect(await runOk("prebuilds resume")).toBe("Prebuilt workspaces are active.\n");
});
