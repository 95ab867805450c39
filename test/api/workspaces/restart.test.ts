// Builds across server restarts: an unfinished build continues after the next start, or fails with a reason.
import { expect, test } from "bun:test";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { usesActiveNodes } from "#test/support/cluster/active-nodes.ts";
import { tempDirectory } from "#test/support/server.ts";
import {
  awaitBuild,
  awaitWorkspace,
  createWorkspace,
  ECHO,
  openWorld,
  seedTemplate,
} from "#test/support/workspaces.ts";

const isFailed = ({ latest_build }: Workspace): boolean => latest_build.status === "failed";
const isStarting = ({ latest_build }: Workspace): boolean => latest_build.status === "starting";

test("[WK-15] a restarted server runs an interrupted build again, and fails it after the second interruption", async () => {
  using temp = tempDirectory();
  const directory = temp.path;
  let id = "";
  {
    await using world = await openWorld({ directory });
    const { template_id } = await seedTemplate(world.server, { ...ECHO, echo: { hang: true, logs: ["hello"] } });
    id = (await createWorkspace(world.admin, template_id)).id;
    await awaitWorkspace(world.admin, id, isStarting);
  }
  {
    await using world = await openWorld({ directory });
    const restarted = await awaitWorkspace(world.admin, id, isStarting);
    expect(restarted.latest_build.build_number).toBe(1);
  }
  const expectedError = usesActiveNodes
    ? /The (?:server stopped|job was interrupted) \d+ times/
    : /The server stopped 2 times/;
  // Several nodes give up later, because a rolling upgrade interrupts the build more than once.
  for (let starts = 3; ; starts++) {
    await using world = await openWorld({ directory });
    const { latest_build } = await awaitWorkspace(
      world.admin,
      id,
      (workspace) => isStarting(workspace) || isFailed(workspace),
    );
    if (usesActiveNodes && latest_build.status === "starting" && starts < 8) continue;
    const failed = await awaitBuild(world.admin, id);
    expect(failed.latest_build.status).toBe("failed");
    expect(failed.latest_build.job.error).toMatch(expectedError);
    return;
  }
});

test("[WK-16] queued builds resume in the order in which they were created", async () => {
  using temp = tempDirectory();
  const directory = temp.path;
  const env = { SLIPWAY_PROVISIONER_SLOTS: "1" };
  const ids: string[] = [];
  {
    await using world = await openWorld({ directory, env });
    const hanging = await seedTemplate(world.server, { ...ECHO, echo: { hang: true } });
    const { template_id } = await seedTemplate(world.server);
    const first = await createWorkspace(world.admin, hanging.template_id, "first");
    await awaitWorkspace(world.admin, first.id, isStarting);
    for (const name of ["second", "third"]) ids.push((await createWorkspace(world.admin, template_id, name)).id);
    const third = await world.admin.get<Workspace>(`/api/v2/workspaces/${ids[1]}`);
    expect(third.latest_build.job).toMatchObject({ status: "pending", queue_position: 2, queue_size: 2 });
    await world.admin.patch(`/api/v2/workspacebuilds/${first.latest_build.id}/cancel`);
  }
  await using world = await openWorld({ directory, env });
  const [second, third] = await Promise.all(ids.map((id) => awaitBuild(world.admin, id)));
  expect([second?.latest_build.status, third?.latest_build.status]).toEqual(["running", "running"]);
  const parseStartedAt = (workspace: Workspace | undefined): number =>
    Date.parse(workspace?.latest_build.job.started_at ?? "");
  expect(parseStartedAt(second)).toBeLessThanOrEqual(parseStartedAt(third));
});
