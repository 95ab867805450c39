// Lists with large items: every client gets all of them, but the server never holds the whole list in memory.
import { expect, test } from "bun:test";
import { systemClock } from "#base/clock.ts";
import type { Build } from "#schema/workspaces/build.ts";
import type { Workspaces } from "#schema/workspaces/workspace.ts";
import { type LargeList, presentList } from "#src/api/http/answers/large-list.ts";
import { PageSlots } from "#src/api/http/answers/page-slots.ts";
import { ManualClock } from "#test/support/manual-clock.ts";
import { makeTemplate } from "#test/support/templates.ts";
import { awaitBuild, createBuild, createWorkspace, ECHO, openWorld } from "#test/support/workspaces.ts";

/** About 450,000 characters. */
const METADATA = Array.from({ length: 55 }, (_, i) => ({ key: `key-${i}`, value: "x".repeat(4_000) }));
const toResource = (name: string) => ({ name, type: "box", metadata: METADATA });
const LARGE = JSON.stringify({ ...ECHO, resources: [toResource("main"), toResource("other")] });

test("[HT-52] returns complete lists of large workspaces and builds, plain and compressed", async () => {
  await using world = await openWorld();
  const { admin, server } = world;
  const template = await makeTemplate(admin, LARGE);
  const ids: string[] = [];
  for (let i = 0; i < 12; i += 1) {
    const { id } = await createWorkspace(admin, template.id, `large-${i}`);
    await awaitBuild(admin, id);
    ids.push(id);
  }
  const firstId = ids[0] as string;
  for (let i = 0; i < 10; i += 1) {
    await createBuild(admin, firstId, i % 2 === 0 ? "stop" : "start");
    await awaitBuild(admin, firstId);
  }
  for (const coding of ["identity", "gzip", "zstd", "br"]) {
    const load = async (path: string): Promise<Response> =>
      fetch(new URL(path, server.url), {
        headers: { "service-session-token": admin.token ?? "", "accept-encoding": coding },
      });
    const response = await load("/api/v2/workspaces");
    expect(response.headers.get("content-length")).toBeNull();
    const { workspaces, count } = (await response.json()) as Workspaces;
    expect([count, workspaces.map(({ id }) => id).sort()]).toEqual([12, [...ids].sort()]);
    expect(workspaces.map(({ latest_build }) => latest_build.resources[0]?.metadata?.length)).toEqual(
      Array.from({ length: 12 }, () => METADATA.length),
    );
    const builds = (await (await load(`/api/v2/workspaces/${firstId}/builds`)).json()) as Build[];
    expect(builds.map(({ build_number }) => build_number)).toEqual([11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
  }
});

/** Returns a list of 100 items of a million characters, and the IDs of the items presented so far. */
const createList = (): { list: LargeList; presented: string[] } => {
  const presented: string[] = [];
  const present = async (ids: readonly string[]): Promise<Map<string, string>> => {
    presented.push(...ids);
    return new Map(ids.map((id) => [id, `"${id.padEnd(1_000_000)}"`]));
  };
  return { list: { head: "[", ids: Array.from({ length: 100 }, (_, i) => String(i)), tail: "]", present }, presented };
};

test("[HT-52] presents only the first items to a client that doesn't read, and disconnects it after a minute", async () => {
  const clock = new ManualClock();
  const { list, presented } = createList();
  const pages = new PageSlots(systemClock, 2);
  const deps = { pages, clock, request: new Request("http://localhost/"), holder: "eve" };
  const stream = (await presentList(list, deps)) as ReadableStream<Uint8Array>;
  expect(presented).toHaveLength(10);
  const reader = stream.getReader();
  await reader.read();
  await reader.read();
  expect(presented.length).toBeLessThan(15);
  clock.advance(60_000);
  expect(reader.read()).rejects.toThrow("the client took too long to read the list");
  // The slot is free again.
  (await pages.take("eve"))(0);
});

test("[HT-52] stops presenting items when the client disconnects", async () => {
  const { list, presented } = createList();
  const pages = new PageSlots(systemClock, 2);
  const deps = { pages, clock: systemClock, request: new Request("http://localhost/"), holder: "eve" };
  const stream = (await presentList(list, deps)) as ReadableStream<Uint8Array>;
  await stream.cancel();
  (await pages.take("eve"))(0);
  expect(presented).toHaveLength(10);
});

test("[HT-52] does not present cached items again, and omits deleted ones", async () => {
  const list = {
    head: "[",
    ids: ["a", "b", "c", "d"],
    tail: "]",
    find: (id: string) => (id === "b" ? '"known"' : undefined),
    present: async (ids: readonly string[]) => new Map(ids.filter((id) => id !== "c").map((id) => [id, `"${id}"`])),
  };
  const pages = new PageSlots(systemClock, 2);
  const deps = { pages, clock: systemClock, request: new Request("http://localhost/"), holder: "eve" };
  expect(await presentList(list, deps)).toBe('["a","known","d"]');
  expect(await presentList({ ...list, ids: [] }, deps)).toBe("[]");
});
