// A Docker Engine is killed while it builds a repository image, for a workspace or in advance, and restarted: the next build creates the
// image once. Also, a server is killed during a workspace's build.
import type { CreatedRepositoryPrebuild, RepositoryPrebuild } from "#schema/templates/repository-prebuild.ts";
import type { Workspace } from "#schema/workspaces/workspace.ts";
import { openGitWorld } from "#test/repositories/world.ts";
import { IMAGE } from "#test/support/docker/docker-world.ts";
import type { Moment } from "#test/support/docker/engine-proxy.ts";
import { canOwnEngine } from "#test/support/docker/own-engine.ts";
import { compiled } from "#test/support/needs.ts";
import { until } from "#test/support/until.ts";
import type { Check, CheckOptions } from "../store/store-crash.ts";
import { EngineWorld } from "./engine-world.ts";

const PREBUILDS = "/api/v2/repositories/prebuilds";
const BUILD = /^POST \/build/;
/** `copying`: the engine has received some of the files; `after`: it has printed something. */
const MOMENTS: readonly Moment[] = ["before", "copying", "after"];

const engineBuilds = async ({ rounds, log }: CheckOptions): Promise<string> => {
  using git = openGitWorld();
  await using world = await EngineWorld.open();
  const { admin, place, engine, proxy, env } = world;
  const app = await git.publish("app", { Dockerfile: `FROM ${IMAGE}\nCOPY big /big\n`, big: "0" });
  const url = git.link("app");
  const push = (): void => {
    app.write("big", crypto.randomUUID().repeat(60_000));
    app.git("commit", "-q", "-a", "-m", "more");
    app.git("push", "-q", "hosted", "main");
  };
  const countImages = async (): Promise<number> => {
    const query = { filters: JSON.stringify({ label: [`slipway.repository=${url}`] }) };
    return ((await world.direct.json<unknown[]>("list", "GET", "/images/json", { query })) ?? []).length;
  };
  const assertTrue = (isTrue: boolean, failure: string): void => {
    if (!isTrue) throw new Error(failure);
  };
  const { prebuild } = await admin.post<CreatedRepositoryPrebuild>(PREBUILDS, { url, keep: 1 });
  const awaitPrebuild = async (): Promise<RepositoryPrebuild> =>
    until(async () => {
      const [prebuild] = await admin.get<RepositoryPrebuild[]>(PREBUILDS);
      return prebuild && ["ready", "failed"].includes(prebuild.status) && prebuild;
    });
  assertTrue((await awaitPrebuild()).status === "ready", `the first build failed: ${(await awaitPrebuild()).error}`);
  for (let round = 1; round <= rounds; round++) {
    for (const moment of MOMENTS) {
      push();
      const killed = proxy.cut({ call: BUILD, moment, act: () => engine.kill() });
      await Promise.all([killed, admin.post(`${PREBUILDS}/${prebuild.id}/build`)]);
      await until(async () => (await awaitPrebuild()).status === "failed", { what: "the build to fail" });
      const { error } = await awaitPrebuild();
      assertTrue(/Docker Engine/.test(error), `the error does not name the engine: ${error}`);
      await engine.start();
      proxy.reconnect();
      await admin.post(`${PREBUILDS}/${prebuild.id}/build`);
      const commit = app.git("rev-parse", "HEAD").trim();
      await until(async () => (await awaitPrebuild()).commit === commit && (await awaitPrebuild()).status === "ready");
      assertTrue((await countImages()) === 1, `${await countImages()} images instead of one`);
      log(`prebuild, ${moment}: failed with a reason, built again`);
    }
    if (!compiled.found) continue;
    for (const victim of ["engine", "server"] as const) {
      push();
      const kill = (): void => (victim === "engine" ? engine.kill() : place.currentProcess.kill("SIGKILL"));
      const killed = proxy.cut({ call: BUILD, moment: "copying", act: kill });
      const body = { name: `${victim}-${round}`, repository: { url } };
      const created = await admin.post<Workspace>("/api/v2/users/me/workspaces", body);
      await killed;
      if (victim === "engine") {
        const { job } = await world.awaitBuild(created.id);
        assertTrue(/Docker Engine/.test(job.error ?? ""), `the error does not name the engine: ${job.error}`);
        await engine.start();
        proxy.reconnect();
        assertTrue(
          (await world.build(created.id, "start")).job.status === "succeeded",
          "the workspace cannot be started again",
        );
      } else {
        await place.currentProcess.ended;
        proxy.reconnect();
        await place.start({ env });
        const { job } = await world.awaitBuild(created.id);
        assertTrue(job.status === "succeeded", `the build does not continue: ${job.error}`);
      }
      assertTrue(
        (await countImages()) === 2,
        `${await countImages()} images instead of one for the prebuild and one for the workspace`,
      );
      await world.build(created.id, "delete", { permanent: true });
      const { built_at: earlierBuiltAt } = await awaitPrebuild();
      await admin.post(`${PREBUILDS}/${prebuild.id}/build`);
      await until(
        async () => (await awaitPrebuild()).built_at !== earlierBuiltAt && (await awaitPrebuild()).status === "ready",
      );
      log(`image of a workspace, ${victim} killed: built again`);
    }
  }
  await admin.delete(`${PREBUILDS}/${prebuild.id}`);
  // The image stays for later workspaces of the repository.
  assertTrue((await countImages()) === 1, `${await countImages()} images instead of one`);
  return `${rounds} times killed in ${MOMENTS.length} prebuilds${compiled.found ? " and two builds of workspaces" : ""}; each image was built once afterwards`;
};

export const checks: Check[] = canOwnEngine ? [{ name: "docker: killed while it builds", run: engineBuilds }] : [];
