// Local workspaces of a separate system user, whose real processes try to read the server's files.

import { expect, test as testAnywhere } from "bun:test";
import { chmodSync, existsSync, lstatSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { Client } from "#src/client.ts";
import { findLocalUser } from "#src/provisioners/local/user.ts";
import { runVerb } from "#test/cli/run-verb.ts";
import { createChat } from "#test/support/chats.ts";
import { ScriptedModels } from "#test/support/models/scripted-models.ts";
import { needs, testNeeding } from "#test/support/needs.ts";
import { requireSingleServer, testSingleServer } from "#test/support/one-server.ts";
import { usesPostgres } from "#test/support/postgres-server.ts";
import { seedUser } from "#test/support/seed.ts";
import { tempDirectory } from "#test/support/server.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, createBuild, createWorkspace, openWorld } from "#test/support/workspaces.ts";
import { callTools } from "#test/tools/world.ts";

const test = testSingleServer("local");

type NamedTemplate = { id: string; name: string; organization_id: string };
const USER = "nobody";
const env = { SLIPWAY_LOCAL_WORKSPACE_USER: USER };
const TEMPLATE = "provisioner: local\nresources: [{name: a, agents: [{name: main}]}]\n";

testNeeding(
  [needs.root, requireSingleServer("local")],
  "[LP-11] a member's chat in a local workspace cannot read the server's key, database, blobs or environment",
  async () => {
    const models = new ScriptedModels();
    await using world = await openWorld({ models, clock: systemClock, env });
    const { admin, server } = world;
    const [local] = await admin.get<NamedTemplate[]>("/api/v2/templates");
    const { organization_id = "", id: template_id } = local ?? {};
    const member = new Client(server.url, (await seedUser(server, { organization_id })).token);
    await createChat({ owner: member, organization_id }, "go");
    const services = { ...world, models, owner: member, organization_id };
    const created = await callTools(services, await models.next(), ["create_workspace", { template_id, name: "mine" }]);
    const [{ workspace_id = "" } = {}] = created.results as { workspace_id: string }[];
    const read = (path: string): [string, object] => ["read_file", { path }];
    // In a cluster, the database is not in the directory.
    const files = ["encryption.key", ...(usesPostgres ? [] : ["slipway.db", "slipway.db-wal"])];
    for (const file of files) expect(existsSync(join(server.directory, file))).toBe(true);
    const readAttempts = await callTools(
      services,
      created.next,
      ...files.map((file) => read(`../../../${file}`)),
      read(join(server.directory, "encryption.key")),
      read(`/proc/${process.pid}/environ`),
      read(join(server.directory, "workspaces", workspace_id, "daemon.json")),
    );
    expect(readAttempts.results).toHaveLength(files.length + 3);
    for (const result of readAttempts.results)
      expect(JSON.stringify(result)).toMatch(/permission|EACCES|not allowed|denied/i);
    const { pid } = JSON.parse(readFileSync(join(server.directory, "workspaces", workspace_id, "daemon.json"), "utf8"));
    const command = [
      "id -un; id -Gn; echo mine > own; cat own",
      `for folder in . .. ../.. ../../.. ../../../blobs; do ls "$folder" > /dev/null 2>&1 && echo "listed $folder"; done`,
      `cat ../../../encryption.key /proc/${process.pid}/environ /proc/${process.pid}/mem 2>/dev/null | wc -c`,
      `kill -0 ${process.pid} 2>/dev/null || echo "no signals"`,
      // The process cannot read its own daemon either, whose agent ID is only in memory (rule AG-29).
      `cat /proc/${pid}/environ 2>/dev/null | wc -c; (: < /proc/${pid}/mem) 2>/dev/null || echo "no memory"`,
    ].join("\n");
    const executed = await callTools(services, readAttempts.next, ["execute", { command, timeout: "60s" }]);
    expect(executed.results).toMatchObject([
      { output: `${USER}\nnogroup\nmine\nlisted .\n0\nno signals\n0\nno memory\n` },
    ]);
    await createBuild(admin, workspace_id, "delete", { permanent: true });
    expect((await awaitBuild(admin, workspace_id)).latest_build.status).toBe("deleted");
    expect(existsSync(join(server.directory, "workspaces", workspace_id))).toBe(false);
  },
);

testNeeding(
  [needs.root, requireSingleServer("local")],
  "[LP-12] the next start gives an existing workspace to the separate user and closes the data directory; a delete follows no link",
  async () => {
    using temp = tempDirectory();
    using outside = tempDirectory();
    const directory = temp.path;
    chmodSync(outside.path, 0o777);
    writeFileSync(join(outside.path, "precious"), "kept");
    let id = "";
    {
      await using world = await openWorld({ directory });
      const { id: template } = await makeTemplate(world.admin, TEMPLATE);
      ({ id } = await createWorkspace(world.admin, template));
      await awaitBuild(world.admin, id);
      await createBuild(world.admin, id, "stop");
      await awaitBuild(world.admin, id);
    }
    const home = join(directory, "workspaces", id, "home");
    writeFileSync(join(home, "before"), "");
    symlinkSync(outside.path, join(home, "link"));
    writeFileSync(join(directory, "notes"), "open to all", { mode: 0o644 });
    await using world = await openWorld({ directory, env });
    await createBuild(world.admin, id, "start");
    expect((await awaitBuild(world.admin, id)).latest_build.status).toBe("running");
    const { uid, gid } = findLocalUser(USER);
    for (const path of [home, join(home, "before"), join(home, "link")]) {
      expect([path, lstatSync(path).uid, lstatSync(path).gid]).toEqual([path, uid, gid]);
    }
    expect(statSync(outside.path).uid).toBe(0);
    const modes = ["", "workspaces", "notes", `workspaces/${id}`, `workspaces/${id}/home`].map(
      (name) => statSync(join(directory, name)).mode & 0o777,
    );
    expect(modes).toEqual([0o710, 0o710, 0o600, 0o710, 0o700]);
    const { pid } = JSON.parse(readFileSync(join(directory, "workspaces", id, "daemon.json"), "utf8"));
    expect(readFileSync(`/proc/${pid}/status`, "utf8")).toContain(`Uid:\t${uid}\t${uid}\t${uid}\t${uid}\n`);
    await createBuild(world.admin, id, "delete", { permanent: true });
    expect((await awaitBuild(world.admin, id)).latest_build.status).toBe("deleted");
    expect(existsSync(home)).toBe(false);
    expect(readFileSync(join(outside.path, "precious"), "utf8")).toBe("kept");
  },
);

test("[LP-11] with an unusable user, builds fail with the reason instead of running as the server's user", async () => {
  for (const [name, reason] of [
    ["no-such-user-here", "this machine has no such user"],
    ["root", "is root, which doesn't isolate anything"],
  ] as const) {
    await using world = await openWorld({ env: { SLIPWAY_LOCAL_WORKSPACE_USER: name } });
    const { id: template } = await makeTemplate(world.admin, TEMPLATE);
    const { id } = await createWorkspace(world.admin, template);
    const { latest_build } = await awaitBuild(world.admin, id);
    expect(latest_build.status).toBe("failed");
    expect(latest_build.job.error).toContain(reason);
    expect(existsSync(join(world.server.directory, "workspaces", id))).toBe(false);
  }
  expect(() => findLocalUser(USER, 1000)).toThrow("only a server that runs as root");
});

testNeeding(
  [needs.root, requireSingleServer("local")],
  "[LP-11] doctor checks that the user exists and cannot read the server's files",
  async () => {
    using temp = tempDirectory();
    const dataDirectory = join(temp.path, "data");
    const runDoctor = async (user: string): Promise<string> => {
      const flags = ["--quick", "--data-dir", dataDirectory, "--address=127.0.0.1:0", `--local-workspace-user=${user}`];
      const { printed } = await runVerb(["doctor", ...flags]);
      return printed.split("\n").find((line) => line.includes("local workspace user")) ?? "";
    };
    expect(await runDoctor("no-such-user-here")).toMatch(/^WRONG .*has no such user/);
    expect(await runDoctor(USER)).toMatch(/^WRONG .*nobody cannot reach .*slipway-test/);
    chmodSync(temp.path, 0o755);
    {
      await using _ = await openWorld({ directory: dataDirectory, env });
    }
    expect(await runDoctor(USER)).toMatch(/^ok .*nobody, who cannot read the server's files/);
    chmodSync(dataDirectory, 0o755);
    chmodSync(join(dataDirectory, "encryption.key"), 0o644);
    expect(await runDoctor(USER)).toMatch(/^WRONG .*nobody can read .*encryption\.key/);
  },
);

testAnywhere("[LP-11] the systemd unit for a separate user runs as root, with permission to switch users", async () => {
  const flag = `--local-workspace-user=${USER}`;
  expect(await runVerb(["systemd", flag])).toMatchObject({ code: 2, errors: expect.stringContaining("--user root") });
  const { printed } = await runVerb(["systemd", "--user", "root", flag]);
  expect(printed).toMatch(/^CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_CHOWN/m);
});
