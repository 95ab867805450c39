// Workspace operations other than starting and stopping: renaming, a schedule, sharing.
import { describe, expect, test } from "bun:test";
import type { WorkspaceAcl } from "#schema/workspaces/acl.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { PortShare } from "#schema/workspaces/port-share.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { parseSchedule } from "#src/cli/client/schedule/clock-words.ts";
import { Client } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { ADMIN } from "#test/support/server.ts";
import { createWorkspace, ECHO, seedTemplate } from "#test/support/workspaces.ts";
import { openClientWorld, readToken, signInAs } from "./client-world.ts";

const world = await forFile(openClientWorld({ env: { SLIPWAY_ALLOW_WORKSPACE_RENAMES: "true" } }));
await signInAs(world);
const admin = new Client(world.server.url, readToken(world));
await seedTemplate(world.server, { ...ECHO, resources: [{ name: "main" }] }, { name: "fine" });
for (const name of ["one", "two"]) await world.runOk(["workspaces", "create", name, "--template", "fine"]);

const splitWords = (line: string): string[] => line.split(" ");
const run = (line: string) => world.run(splitWords(line));
const runOk = (line: string) => world.runOk(splitWords(line));
const loadWorkspace = (name: string): Promise<Workspace> => admin.get(`/api/v2/users/me/workspace/${name}`);

describe("a workspace", () => {
  test("[CV-23] a restart stops and starts the workspace, or only starts it if it is stopped", async () => {
    const { id } = await loadWorkspace("one");
    expect(await runOk("workspaces restart one")).toBe("one is running.\n");
    await runOk("workspaces stop one");
    const ended = JSON.parse(await runOk("workspaces restart one --json")) as Workspace;
    expect(ended.latest_build).toMatchObject({ transition: "start", status: "running" });
    const builds = await admin.get<Build[]>(`/api/v2/workspaces/${id}/builds`);
    expect(builds.map(({ transition }) => transition)).toEqual(["start", "stop", "start", "stop", "start"]);
  });

  test("[CV-23] a workspace can be renamed, and is listed first as a favorite", async () => {
    expect(await runOk("workspaces rename two second")).toBe("Renamed two to second.\n");
    expect(await run("workspaces rename second one")).toMatchObject({ code: 1, err: expect.stringContaining("name") });
    expect(await runOk("workspaces favorite second")).toBe("second is a favorite.\n");
    expect((await loadWorkspace("second")).favorite).toBe(true);
    expect((await runOk("workspaces list")).split("\n")[1]).toStartWith("second ");
    expect(await runOk("workspaces unfavorite second")).toBe("second is not a favorite.\n");
    expect((await loadWorkspace("second")).favorite).toBe(false);
  });

  test("[CV-23] a schedule is entered in common notations, shown, and removed", async () => {
    expect(await runOk("schedule start one 9:30 Mon-Fri Europe/Berlin")).toContain(
      "Starts      CRON_TZ=Europe/Berlin 30 9 * * 1-5\nNext start  in ",
    );
    expect(await runOk("schedule stop one 8h")).toContain("Stops       8 hours after each start\n");
    await runOk("workspaces restart one");
    const expectedDeadline = Date.now() + 3 * 3_600_000;
    expect(await runOk("schedule extend one 3h")).toContain("Next stop   in 3 hours");
    const { deadline } = (await loadWorkspace("one")).latest_build;
    expect(Math.abs(Date.parse(deadline ?? "") - expectedDeadline)).toBeLessThan(120_000);
    expect(JSON.parse(await runOk("schedule show one --json"))).toMatchObject({ ttl_ms: 28_800_000 });
    await runOk("schedule start one off");
    expect(await runOk("schedule stop one off")).toMatch(/Starts +off\n[\s\S]*Stops +off\n/);
    const invalid = await Promise.all(
      ["schedule start one 25:00", "schedule start one 9:30 Fry", "schedule stop one 8", "schedule extend one"].map(
        run,
      ),
    );
    expect(invalid.map(({ code }) => code)).toEqual([2, 2, 2, 2]);
    expect(await run("schedule start one 9:30 Mon-Fri Nowhere/Land")).toMatchObject({ code: 1 });
    expect((await loadWorkspace("one")).autostart_schedule).toBeUndefined();
  });

  test("[CV-23] parses times of day in different local notations", () => {
    const parseLine = (line: string): string => parseSchedule(splitWords(line), "UTC");
    expect(parseLine("9")).toBe("CRON_TZ=UTC 0 9 * * *");
    expect(parseLine("9:30PM")).toBe("CRON_TZ=UTC 30 21 * * *");
    expect(parseLine("12:15am Sat,Sun")).toBe("CRON_TZ=UTC 15 0 * * 0,6");
    // Ranges of days can wrap around the end of the week.
    expect(parseLine("3:51 Mon-Sun")).toBe("CRON_TZ=UTC 51 3 * * *");
    expect(parseLine("3:51 Sun-Sat")).toBe("CRON_TZ=UTC 51 3 * * *");
    expect(parseLine("3:51 Fri-Mon")).toBe("CRON_TZ=UTC 51 3 * * 0,1,5,6");
    expect(parseLine("3:51 Sat-Wed,Fri")).toBe("CRON_TZ=UTC 51 3 * * 0-3,5,6");
    expect(() => parseLine("9 Mon-Fry")).toThrow('"Fry" is not a day');
    expect(() => parseLine("9 Mon-Tue-Wed")).toThrow("more than two days");
    expect(parseLine("7:05 Monday-Thursday,sat America/New_York")).toBe("CRON_TZ=America/New_York 5 7 * * 1-4,6");
    expect(parseLine("7:05 Asia/Tokyo")).toBe("CRON_TZ=Asia/Tokyo 5 7 * * *");
    expect(parseSchedule(["CRON_TZ=UTC 0 7 * * 1"], "Asia/Tokyo")).toBe("CRON_TZ=UTC 0 7 * * 1");
    for (const invalid of ["", "9:60", "0am", "13pm", "9 Mon UTC more", "soon"])
      expect(() => parseLine(invalid)).toThrow();
  });

  test("[CV-24] a workspace is shared with users, groups and everyone, who then see it, and is unshared again", async () => {
    const account = { email: "sam@example.com", username: "sam", password: ADMIN.password };
    await admin.post("/api/v2/users", account);
    const sam = await admin.withToken(undefined).signIn(account.email, account.password);
    const { id } = await loadWorkspace("one");
    const fetchStatus = async (): Promise<number> => (await sam.fetch("GET", `/api/v2/workspaces/${id}`)).status;
    expect([await runOk("share status one"), await fetchStatus()]).toEqual(["Not shared.\n", 404]);
    expect(await runOk("share add one --user sam@example.com --role admin")).toMatch(/\nsam +user +admin\n/);
    expect(await fetchStatus()).toBe(200);
    const acl = JSON.parse(await runOk("share add one --user sam --everyone --json")) as WorkspaceAcl;
    expect([acl.users[0]?.role, acl.groups[0]?.role]).toEqual(["use", "use"]);
    await runOk("share remove one --user sam");
    expect([await runOk("share status one"), await fetchStatus()]).toEqual([expect.stringContaining("Everyone"), 200]);
    expect(await runOk("share remove one --everyone")).toBe("Not shared.\n");
    expect(await fetchStatus()).toBe(404);
    await runOk("groups create crew");
    await runOk("groups members crew --add sam");
    expect(await runOk("share add one --group crew --role use")).toMatch(/\ncrew +group of .* +use\n/);
    expect(await fetchStatus()).toBe(200);
    expect(await runOk("share remove one --group crew")).toBe("Not shared.\n");
    expect(await fetchStatus()).toBe(404);
    const refused = await Promise.all(
      ["share add one", "share add one --user sam --role king", "share add one --user unknown"].map(run),
    );
    expect(refused.map(({ code }) => code)).toEqual([2, 2, 1]);
  });

  test("[CV-24] ports are shared with others and made private again", async () => {
    const { template_id } = await seedTemplate(world.server, ECHO, { name: "wired" });
    await createWorkspace(admin, template_id, "ported");
    expect(await runOk("share ports ported")).toBe("No ports are shared.\n");
    expect(await runOk("share port ported 3000 --to public --https")).toMatch(/\n3000 +\S+ +https +public\n/);
    const { shares } = JSON.parse(await runOk("share port ported 3000 --to authenticated --json")) as {
      shares: PortShare[];
    };
    expect(shares).toMatchObject([{ port: 3000, protocol: "http", share_level: "authenticated" }]);
    expect(await runOk("share port ported 3000 --to owner")).toBe("No ports are shared.\n");
    const problems = [
      "share port ported 3000",
      "share port ported 3000 --to all",
      "share port ported web --to public",
    ].map(run);
    expect((await Promise.all(problems)).map(({ code }) => code)).toEqual([2, 2, 2]);
    expect(await run("share port ported.none 3000 --to public")).toMatchObject({ code: 1 });
  });
});
