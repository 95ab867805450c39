// The containers of a workspace in the API: a fake Docker Engine on a real socket, a real daemon and the real server.
import { beforeEach, describe, expect, test } from "bun:test";
import { findWorkspace } from "#db/workspaces/workspaces.ts";
import type { Generic } from "#schema/generic.ts";
import type { ContainerListing } from "#schema/workspaces/container.ts";
import { Client, type ClientSocket } from "#src/client.ts";
import { forFile } from "#test/support/for-file.ts";
import { getContext, seedAgent, seedUser } from "#test/support/seed.ts";
import { until } from "#test/support/until.ts";
import { startContainerWorld } from "./containers-world.ts";

const setup = await forFile(startContainerWorld());
beforeEach(() => {
  setup.docker.containers.clear();
  setup.docker.refuse = () => undefined;
});

const toPath = (suffix: string): string => setup.world.path(suffix);
const listContainers = (query: string): Promise<ContainerListing> =>
  setup.world.owner.get<ContainerListing>(toPath(`containers?${query}`));
const fetchStatus = async (suffix: string, client = setup.world.owner): Promise<number> =>
  (await client.fetch("GET", toPath(suffix))).status;

const nextListing = async (socket: ClientSocket): Promise<ContainerListing> =>
  JSON.parse(String(await socket.next())) as ContainerListing;

describe("containers", () => {
  test("[CO-1] are listed as the engine reports them, newest first and including stopped ones", async () => {
    setup.docker.put("old", { created: 1_000, running: false, labels: { kind: "db" } });
    setup.docker.put("new", {
      created: 2_000,
      labels: { kind: "web" },
      ports: [
        { IP: "0.0.0.0", PrivatePort: 80, PublicPort: 8080, Type: "tcp" },
        { PrivatePort: 53, Type: "udp" },
      ],
      mounts: [
        { Name: "data", Destination: "/data" },
        { Source: "/home", Destination: "/mnt" },
      ],
    });
    const { containers, warnings } = await listContainers("label=kind%3D");
    expect(warnings).toEqual([]);
    expect(containers).toEqual([
      {
        id: expect.any(String),
        name: "new",
        image: "dev:latest",
        created_at: "1970-01-01T00:33:20.000Z",
        running: true,
        status: "Up 2 minutes",
        labels: { kind: "web" },
        volumes: { data: "/data", "/home": "/mnt" },
        ports: [
          { network: "tcp", port: 80, host_ip: "0.0.0.0", host_port: 8080 },
          { network: "udp", port: 53, host_ip: "", host_port: 0 },
        ],
      },
      expect.objectContaining({ name: "old", running: false, ports: [], volumes: {} }),
    ]);
  });

  test("[CO-2] are filtered by all requested labels; a filter that is not key=value returns 400", async () => {
    setup.docker.put("one", { labels: { kind: "db", team: "a,b" } });
    setup.docker.put("two", { labels: { kind: "web" } });
    const listNames = async (query: string) => (await listContainers(query)).containers.map(({ name }) => name);
    expect(await listNames("label=kind%3Ddb")).toEqual(["one"]);
    expect(await listNames("label=kind%3D&label=team%3Da%2Cb")).toEqual(["one"]);
    expect(await listNames("label=kind%3Dweb&label=team%3D")).toEqual([]);
    for (const query of ["label=kind", "label=%3Dweb", "label=kind%3Dweb&label=x", ""]) {
      const response = await setup.world.owner.fetch("GET", toPath(`containers?${query}`));
      expect([query, response.status]).toEqual([query, 400]);
      expect(((await response.json()) as Generic).validations?.[0]?.field).toBe("label");
    }
    const genuineHeaders = { "coder-session-token": setup.world.seeded.owner_token };
    const anonymous = setup.world.owner.withToken(undefined);
    const listing = (await (
      await anonymous.fetch("GET", toPath("containers"), undefined, {
        headers: genuineHeaders,
      })
    ).json()) as ContainerListing;
    expect(listing.containers).toHaveLength(2);
  });

  test("[CO-3] cause a warning if two need the same host port, or if the engine fails", async () => {
    const ports = [{ IP: "0.0.0.0", PrivatePort: 80, PublicPort: 9000, Type: "tcp" }];
    setup.docker.put("left", { ports });
    setup.docker.put("right", { ports });
    expect((await listContainers("label=none%3D")).warnings).toEqual([expect.stringMatching(/left.*9000\/tcp/)]);
    setup.docker.refuse = () => ({ status: 500, message: "the disk is full" });
    const failedListing = await listContainers("label=none%3D");
    expect(failedListing).toMatchObject({ containers: [], warnings: [expect.stringMatching(/the disk is full/)] });
  });

  test("[CO-4] are available to people who can work in the workspace, while its agent is connected", async () => {
    const member = await seedUser(setup.world.server, { organization_id: setup.world.seeded.organization_id });
    for (const suffix of ["containers?label=a%3Db", "containers/watch"]) {
      expect(await fetchStatus(suffix, setup.world.owner.withToken(member.token))).toBe(404);
      expect(await fetchStatus(suffix, setup.world.owner.withToken(undefined))).toBe(401);
    }
    const neverConnected = await seedAgent(setup.world.server);
    const response = await new Client(setup.world.server.url, neverConnected.owner_token).fetch(
      "GET",
      `/api/v2/workspaceagents/${neverConnected.agent_id}/containers?label=a%3Db`,
    );
    expect(response.status).toBe(400);
    expect(((await response.json()) as Generic).message).toMatch(/not connected.*connecting/);
  });

  test("[CO-5] can be watched: a watcher gets the listing immediately and after each change, until it disconnects", async () => {
    const config = setup.write("watched/.devcontainer/devcontainer.json", "{}");
    using socket = await setup.world.owner.socket(toPath("containers/watch"));
    const firstListing = await nextListing(socket);
    const devcontainer = firstListing.devcontainers.find(({ config_path }) => config_path === config);
    expect(devcontainer).toMatchObject({ status: "stopped", subagent_id: { valid: false } });
    using secondSocket = await setup.world.owner.socket(toPath("containers/watch"));
    await nextListing(secondSocket);
    await setup.world.owner.post(toPath(`containers/devcontainers/${devcontainer?.id}/recreate`));
    const statuses: string[] = [];
    while (!statuses.includes("running")) {
      const { devcontainers } = await nextListing(socket);
      statuses.push(devcontainers.find(({ id }) => id === devcontainer?.id)?.status ?? "gone");
    }
    expect(statuses[0]).toBe("starting");
    socket.send("hello");
    expect(await socket.closed).toMatchObject({ code: 1008 });
    const calls = setup.docker.calls.length;
    await listContainers("label=none%3D");
    expect(setup.docker.calls.length).toBeLessThanOrEqual(calls + 2);
  });

  test("[PT-11] wait for the watcher's memory if their listing is large, and free it after sending", async () => {
    for (let i = 0; i < 50; i += 1) setup.docker.put(`many-${i}`, { labels: { padding: "x".repeat(4_000) } });
    const share = getContext(setup.world.server).callMemory;
    const reservation = await share.take("others", Number.MAX_SAFE_INTEGER, new AbortController().signal);
    using socket = await setup.world.owner.socket(toPath("containers/watch"));
    await until(() => share.waiting === 1);
    {
      // Closing the socket ends its wait for memory.
      using secondSocket = await setup.world.owner.socket(toPath("containers/watch"));
      await until(() => share.waiting === 2);
      secondSocket.close();
    }
    await until(() => share.waiting === 1);
    reservation.release();
    expect((await nextListing(socket)).containers).toHaveLength(50);
    await until(() => share.used === 0);
  });

  test("[CO-6] do not count as activity when viewed", async () => {
    const { store } = getContext(setup.world.server);
    const loadLastUsed = async () =>
      (await store.get(findWorkspace({ id: setup.world.seeded.workspace_id })))?.last_used_at;
    const before = await loadLastUsed();
    using socket = await setup.world.owner.socket(toPath("containers/watch"));
    await nextListing(socket);
    await listContainers("label=a%3Db");
    expect(await loadLastUsed()).toBe(before as number);
  });
});
