// The program's help, its suggestions for misspelled commands, options, settings and names, and the truth of its success messages.
import { describe, expect, test } from "bun:test";
import { AREAS } from "#src/cli/verb.ts";
import { VERBS } from "#src/cli/verbs.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ECHO, seedTemplate } from "#test/support/workspaces.ts";
import { openClientWorld, readToken, signInAs } from "./client-world.ts";

const world = await forFile(openClientWorld());
await signInAs(world);
const admin = new Client(world.server.url, readToken(world));
await seedTemplate(world.server, { ...ECHO, resources: [{ name: "main" }] }, { name: "bare" });
const run = (line: string, env: Record<string, string> = {}) => world.run(line.split(" "), { env });

describe("help", () => {
  test("[CV-37] lists commands by purpose with examples first, and commands for programs only on request", async () => {
    const { out } = await run("help");
    expect(out.indexOf("Examples:")).toBeLessThan(out.indexOf("Usage:"));
    const titles = Object.values(AREAS).slice(0, -1);
    expect(
      titles
        .map((title) => out.indexOf(`\n${title}:\n`))
        .every((position, i, positions) => position > (positions[i - 1] ?? 0)),
    ).toBe(true);
    const allCommands = (await run("help --all")).out;
    for (const { name, area } of VERBS) {
      expect([name, out.includes(`\n  ${name} `), allCommands.includes(`\n  ${name} `)]).toEqual([
        name,
        area !== "plumbing",
        true,
      ]);
    }
  });

  test("[CV-37] describes each command in the imperative, and uses the editors' proper names", async () => {
    const { out } = await run("help");
    const firstWords = [...out.matchAll(/^ {2}[a-z-]+ {2,}([A-Z]\w*)/gm)].map(([, first = ""]) => first);
    expect(firstWords.length).toBeGreaterThan(30);
    expect(firstWords.filter((word) => /[^s]s$/.test(word))).toEqual([]);
    expect((await run("open vscode --help")).out).toContain("in VS Code, using its Coder extension.");
  });

  test("[CV-37] contains only examples of existing commands", async () => {
    const { out } = await run("help");
    const examples = [...out.matchAll(/^ {2}slipway (\S+)/gm)].map(([, verb]) => verb);
    expect(examples.length).toBeGreaterThan(3);
    for (const verb of examples) expect(VERBS.map(({ name }) => name)).toContain(verb ?? "");
  });
});

describe("shortcuts", () => {
  test("[CV-37] work like the matching `slipway workspaces` commands", async () => {
    expect(await run("create dev --template bare")).toMatchObject({ code: 0, out: "dev is running.\n" });
    expect((await run("ls")).out).toBe((await run("workspaces list")).out);
    expect((await run("ps")).out).toContain("dev");
    expect((await run("stop dev")).out).toBe("dev is stopped.\n");
    expect((await run("ps")).out).not.toContain("dev");
    expect((await run("restart dev")).out).toBe("dev is running.\n");
    expect((await run("open dev --print")).out).toMatch(
      new RegExp(`^${world.server.url.origin}/workspaces/[0-9a-f-]{36}\n$`),
    );
    expect((await run("rm dev --yes")).out).toBe("dev is deleted.\n");
    expect((await run("start dev")).code).toBe(1);
  });

  test("[CV-37] `update` moves a workspace to its template's active version, once", async () => {
    await run("create old --template bare");
    const { template_id } = await admin.get<{ template_id: string }>("/api/v2/users/me/workspace/old");
    const folder = `${world.home}/bare`;
    await Bun.write(`${folder}/template.yaml`, "provisioner: echo\nresources:\n  - name: main\n");
    expect((await run("templates push bare")).code).toBe(0);
    expect(await run("update old")).toMatchObject({ code: 0, out: "old is running.\n" });
    const { active_version_id } = await admin.get<{ active_version_id: string }>(`/api/v2/templates/${template_id}`);
    const { latest_build } = await admin.get<{ latest_build: object }>("/api/v2/users/me/workspace/old");
    expect(latest_build).toMatchObject({ template_version_id: active_version_id, transition: "start" });
    expect((await run("update old")).out).toBe("old already uses the active version of its template.\n");
  });
});

describe("suggestions", () => {
  const CASES: readonly (readonly [line: string, expected: string])[] = [
    ["strt dev", "Did you mean start?"],
    ["list", "Use `slipway ls`."],
    ["rename a b", "Did you mean `slipway workspaces rename`?"],
    ["workspaces lst", "Did you mean list?"],
    ["create x --tmplate bare", "Did you mean --template?"],
    ["--global-confg x ls", "Did you mean --global-config?"],
    ["serve --port 80", "Did you mean --address?"],
    ["serve --data /tmp", "Did you mean --data-dir?"],
    ["open vscod dev", "Did you mean vscode?"],
    ["start dev --reason vscode_conection", "Did you mean vscode_connection?"],
  ];
  test.each(CASES)("[CV-38] `slipway %s` is wrong usage: %s", async (line, expected) => {
    expect(await run(line)).toMatchObject({ code: 2, out: "", err: expect.stringContaining(expected) });
  });

  test("[CV-38] suggests a setting for its name in other products, and nothing for other unknown names", async () => {
    const { err } = await run("serve", { SLIPWAY_PORT: "80", SLIPWAY_HTTP_ADDRESS: "x", SLIPWAY_CLUSTR_TOKEN: "x" });
    expect(err).toContain("SLIPWAY_PORT (environment): unknown setting. Did you mean SLIPWAY_ADDRESS?");
    expect(err).toContain("SLIPWAY_HTTP_ADDRESS (environment): unknown setting. Did you mean SLIPWAY_ADDRESS?");
    expect(err).not.toContain("NODE_ADDRESS");
  });

  test("[CV-38] suggests the closest match for an unknown name", async () => {
    await run("create harbour --template bare");
    const problems = ["start harbor", "create x --template bar", "users show admn", "groups members Evryone"];
    const results = await Promise.all(problems.map((line) => run(line)));
    expect(results.map(({ code }) => code)).toEqual([1, 1, 1, 1]);
    expect(results.map(({ err }) => /Did you mean (.*?)\?/.exec(err)?.[1])).toEqual([
      "harbour",
      "bare",
      "admin",
      "Everyone",
    ]);
  });
});

describe("success messages", () => {
  test("[CV-39] `create` reports a running workspace only once its agent is connected", async () => {
    const created = await run("create real --template local --json");
    const { latest_build } = JSON.parse(created.out) as {
      latest_build: { resources: { agents?: { status: string }[] }[] };
    };
    const agents = latest_build.resources.flatMap((resource) => resource.agents ?? []);
    expect(agents).toMatchObject([{ status: "connected" }]);
    await run("rm real --yes");
  });

  test("[CV-39] an agent that does not connect fails the command with a reason; Ctrl-C prints what is still in progress", async () => {
    const agents = [{ name: "main", os: "linux", arch: "amd64", connection_timeout: 1 }] as const;
    const resources = [{ name: "main", agents: [...agents] }];
    await seedTemplate(world.server, { ...ECHO, resources }, { name: "silent" });
    expect(await run("create quiet --template silent")).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringMatching(
        /quiet was started, but its agent main did not connect within 1 s\. `slipway logs quiet`/,
      ),
    });
    const slow = [{ name: "main", agents: [{ ...agents[0], connection_timeout: 600 }] }];
    await seedTemplate(world.server, { ...ECHO, resources: slow }, { name: "slow" });
    const createProcess = world.spawn(["create", "waits", "--template", "slow"]);
    let err = "";
    for await (const chunk of createProcess.stderr) {
      err += new TextDecoder().decode(chunk);
      if (err.includes("still connecting\n")) createProcess.kill("SIGINT");
    }
    expect([await createProcess.exited, err]).toEqual([
      130,
      expect.stringContaining("No longer waiting: waits was started; its agent main is still connecting."),
    ]);
    expect((await run("start waits --no-wait")).out).toBe("waits was already started.\n");
    expect(await run("start quiet")).toMatchObject({
      code: 1,
      err: expect.stringContaining("did not connect within 1 s"),
    });
  });
});
