// Opening a workspace in a local program: `slipway open` passes the right link to the right program.
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { until } from "#test/support/until.ts";
import { ECHO, seedTemplate } from "#test/support/workspaces.ts";
import { openClientWorld, readToken, signInAs } from "./client-world.ts";

const readOpened = (): string => readFileSync(join(world.home, "opened"), "utf8");

const world = await forFile(openClientWorld());
await signInAs(world);
const apps = [
  { slug: "web", display_name: "Web", url: "http://localhost:3000" },
  { slug: "docs", display_name: "Docs", url: "https://docs.example.com/a?b=c", external: true },
  { slug: "steam", display_name: "Steam", url: "steam://run/1", external: true },
  { slug: "code", display_name: "Code", url: "vscode://file/srv", external: true },
  { slug: "evil", display_name: "Evil", url: "file:///etc/passwd", external: true },
];
const agents = [{ name: "main", os: "linux", arch: "amd64", apps }];
await seedTemplate(world.server, { ...ECHO, resources: [{ name: "main", agents }] } as never, { name: "fine" });
// The workspace's agent exists only in the store and never connects.
await world.runOk(["workspaces", "create", "dev", "--template", "fine", "--no-wait"]);
await until(async () => (await world.run(["open", "vscode", "dev", "--print"])).code === 0, {
  what: "the build of dev to have an agent",
});
// A fake desktop opener that records its argument.
const script = `#!/bin/sh\nprintf '%s' "$1" > '${world.home}/opened'\n`;
for (const name of ["xdg-open", "open"]) writeFileSync(join(world.home, "bin", name), script, { mode: 0o755 });

const runOk = (line: string) => world.runOk(line.split(" "));
const run = (line: string) => world.run(line.split(" "));

test("[CV-26] each editor's link contains server, owner, workspace, agent and folder, and a token only on request", async () => {
  expect(await runOk("open vscode dev /srv/my+code")).toBe("");
  const link = new URL(readOpened());
  expect([link.protocol, link.host, link.pathname]).toEqual(["vscode:", "coder.coder-remote", "/open"]);
  expect(Object.fromEntries(link.searchParams)).toEqual({
    url: world.server.url.origin,
    owner: "admin",
    workspace: "dev",
    agent: "main",
    folder: "/srv/my+code",
  });
  expect(await runOk("open cursor dev.main --print")).toStartWith("cursor://coder.coder-remote/open?url=http%3A");
  expect(await runOk("open jetbrains dev /srv --print")).toMatch(
    /^jetbrains-gateway:\/\/connect#type=coder&url=http%3A.*&owner=admin&workspace=dev&agent=main&folder=%2Fsrv\n$/,
  );
  const { link: linkWithKey } = JSON.parse(await runOk("open vscode dev --with-token --json")) as { link: string };
  const token = new URL(linkWithKey).searchParams.get("token") ?? "";
  expect(await new Client(world.server.url, token).get("/api/v2/users/me")).toMatchObject({ username: "admin" });
});

test("[CV-26] an app opens at its local host name or its own address; an app that would read local files is refused", async () => {
  await runOk("open app dev web");
  expect(readOpened()).toBe(`http://web--main--dev--admin.apps.localhost:${world.server.url.port}/`);
  await runOk("open app dev docs");
  expect(readOpened()).toBe("https://docs.example.com/a?b=c");
  const [evil, unknown, unknownAgent, noApp] = await Promise.all([
    run("open app dev evil"),
    run("open app dev none"),
    run("open vscode dev.other"),
    run("open app dev"),
  ]);
  expect(evil).toMatchObject({ code: 1, err: expect.stringContaining("cannot be opened") });
  expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining("it has web, docs, steam, code, evil") });
  expect(unknownAgent).toMatchObject({ code: 1, err: expect.stringContaining("no agent other; it has main") });
  expect(noApp.code).toBe(2);
  expect(readOpened()).toBe("https://docs.example.com/a?b=c");
});

test("[CV-26] an app that starts an unknown program opens only after the user has confirmed its link", async () => {
  await runOk("open app dev code");
  expect(readOpened()).toBe("vscode://file/srv");
  const refused = await run("open app dev steam");
  expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("nothing was opened") });
  for (const [answer, code, opened] of [
    ["no", 1, "vscode://file/srv"],
    ["yes", 0, "steam://run/1"],
  ] as const) {
    await using terminal = world.runOnTerminal("slipway open app dev steam");
    await terminal.until("with the link steam://run/1. Open it? (yes/no): ");
    terminal.type(`${answer}\n`);
    expect([await terminal.exited, readOpened()]).toEqual([code, opened]);
  }
  await runOk("open app dev docs");
  await runOk("open app dev steam --yes");
  expect(readOpened()).toBe("steam://run/1");
});

test("[CV-26] a server's list of schemes only shortens the list of the program itself", async () => {
  const openWith = async (app: string, external_app_schemes: string[]) => {
    using proxy = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      async fetch({ url, headers }) {
        const { pathname, search } = new URL(url);
        if (pathname === "/api/v2/applications/host") return Response.json({ host: "", external_app_schemes });
        const answer = await fetch(new URL(pathname + search, world.server.url), { headers });
        return new Response(await answer.text(), { status: answer.status });
      },
    });
    const env = { SLIPWAY_URL: proxy.url.href, SLIPWAY_TOKEN: readToken(world) };
    return await world.run(["open", "app", "dev", app], { env });
  };
  await runOk("open app dev docs");
  const refused = { code: 2, err: expect.stringContaining("nothing was opened") };
  expect(await openWith("steam", ["steam", "vscode"])).toMatchObject(refused);
  expect(await openWith("code", [])).toMatchObject(refused);
  expect(readOpened()).toBe("https://docs.example.com/a?b=c");
  expect(await openWith("code", ["vscode"])).toMatchObject({ code: 0 });
  expect(readOpened()).toBe("vscode://file/srv");
});

test("[CV-26] if no program can open links, the link is printed without a token", async () => {
  const failing = `#!/bin/sh\nexit 3\n`;
  for (const name of ["xdg-open", "open"]) writeFileSync(join(world.home, "bin", name), failing, { mode: 0o755 });
  const failed = await run("open vscode dev --with-token");
  expect(failed.err).toContain("open this URL yourself:\nvscode://");
  expect([failed.code, failed.err.includes("token=")]).toEqual([1, false]);
});
