// The location (src/domain/location.ts) of a node among others: communicates with them over links (docs/spec/cluster-nodes.md).

import { JobReport } from "#actors/job/report.ts";
import type { Actor } from "#actors/runtime/actor.ts";
import { type ActorKind, Directory, type OpenDirectory } from "#actors/runtime/directory.ts";
import type { ActorLocation, RemoteActors } from "#actors/runtime/remote-asks.ts";
import { type RemoteJobRequest, RemoteJobs } from "#actors/runtime/remote-jobs.ts";
import type { JobOwner, NamedJob } from "#actors/runtime/remote-queues.ts";
import type { WorkspaceActor } from "#actors/workspace/actor.ts";
import type { WorkedBuild } from "#actors/workspace/build-runner.ts";
import type { Clock } from "#base/clock.ts";
import { NotStartedError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { finishesWithin, retry } from "#base/retry.ts";
import { FIRST_SHARD, listOtherNodes, type Shards } from "#base/shards.ts";
import { CommitError } from "#db/engine/store.ts";
import type { ShardIndex } from "#db/shard-index.ts";
import type { JobNeeds, JobWork, Location, ShutDownAgents, ShutDownOfBuild } from "#domain/location.ts";
import { LostGuests } from "#domain/tailnet/lost-guests.ts";
import type { Network } from "#domain/tailnet/network.ts";
import { type RelayMessage, RemoteRelay } from "#domain/tailnet/remote-relay.ts";
import { type RemoteClient, RemoteTunnels } from "#domain/tailnet/remote-tunnels.ts";
import { type Coordinator, createClientRules, type Relay } from "#src/tailnet/index.ts";
import {
  type AgentDialer,
  createRouter,
  createTailnetClient,
  pipe,
  serve,
  Tailnet,
  WireError,
} from "#src/wire/index.ts";
import type { NodeLinks } from "./node-link.ts";

/** What a node needs to communicate with the others. */
export type LocationDeps = {
  readonly clock: Clock;
  readonly shards: Shards;
  readonly index: ShardIndex;
  readonly links: Pick<NodeLinks, "call" | "serve" | "open" | "serveStreams">;
  readonly copy?: (<T>(message: T) => T) | undefined;
};

/** Returns the location of a node among others, and starts answering their calls. */
export const createSharedLocation = (deps: LocationDeps): Location => ({
  isHere: (part) => deps.shards.has(part),
  countArrivals: () => deps.shards.arrivals,
  openDirectory: openDirectories(deps),
  openDialer: (local) => openDialer(deps, local),
  joinNetwork(network) {
    connectRelays(deps, network.relay);
    connectCoordinators(deps, network.coordinator);
    network.others = share(deps, NETWORK, async () => network.here) as Network["others"];
  },
  openJobs: (needs) => openJobs(deps, needs),
  shutDownOnOwner: (workspaces, shutDown) => shutDownOnOwner(deps, workspaces, shutDown),
  share: (service, run) => share(deps, service, run),
  runOnFirst: (service, run) => runOnFirst(deps, service, run),
});

/** Returns where the owner of a shard is now. An undefined shard, of an ID that does not exist yet, counts as here. */
const locateShard = (shards: Shards, shard: number | undefined): ActorLocation =>
  shard === undefined || shards.has(shard) ? "here" : (shards.nodeOf(shard) ?? "moving");

// Actors on other nodes: they are located by the shard of their ID and called remotely. This node answers calls to its own actors.

const ACTOR = "actor";

/** A message to an actor on another node. It includes the shard, because an ID that is about to be created cannot be looked up there. */
type RemoteMessage = {
  readonly kind: ActorKind;
  readonly id: string;
  readonly part: number;
  readonly message: string;
  readonly args: unknown;
};

// biome-ignore lint/suspicious/noExplicitAny: messages come by their names
type AnyDirectory = Pick<Directory<Actor<any> & Record<string, any>>, "askHere" | "isStopping">;

/**
 * Opens directories, and handles other nodes' messages to the actors of this one. A message for a shard that has moved since is
 * rejected, and the sender looks for the owner again.
 */
const openDirectories = ({ clock, shards, index, links, copy }: LocationDeps): OpenDirectory => {
  const directories = new Map<ActorKind, AnyDirectory>();
  links.serve(ACTOR, async (requested) => {
    const { kind, id, part, message, args } = requested as RemoteMessage;
    const actors = directories.get(kind);
    if (!actors || !shards.has(part) || actors.isStopping)
      throw new NotStartedError("The node does not have this part.");
    index.note(kind, id, part);
    return actors.askHere(id, message, args);
  });
  return (kind, create, { most } = {}) => {
    const remote: RemoteActors = {
      locate(id) {
        const shard = index.findShardOf(kind, id);
        return shard instanceof Promise
          ? shard.then((found) => locateShard(shards, found))
          : locateShard(shards, shard);
      },
      ask(node, id, message, args) {
        const shard = index.findShardOf(kind, id);
        // Normally cached, because the caller has just located the ID; evicted only after a hundred thousand other lookups.
        if (shard instanceof Promise || shard === undefined)
          return Promise.reject(new NotStartedError("It is looked for again."));
        return links.call(node, ACTOR, { kind, id, part: shard, message, args } satisfies RemoteMessage);
      },
      expect: (id, shard) => index.note(kind, id, shard),
    };
    const directory = new Directory(create, clock, { copy, remote, most });
    directories.set(kind, directory as never);
    return directory;
  };
};

// Agents whose tunnels end at another node: that node dials them and forwards the bytes. Chats need this, because the workspace of a chat
// can belong to a different shard than the chat: a claimed prebuild, or another person's workspace.

const AGENT = "agent";

type Target = { readonly agent_id: string; readonly port: number; readonly tls: boolean };

/** Dials agents on the node that has their tunnel, and on behalf of other nodes. */
const openDialer = ({ shards, index, links }: LocationDeps, local: AgentDialer): AgentDialer => {
  links.serveStreams(AGENT, async (args, stream) => {
    const { agent_id, port, tls } = args as Target;
    const shard = await index.findShardOf("agent", agent_id);
    if (shard === undefined || !shards.has(shard)) throw new NotStartedError("The node does not have this workspace.");
    void pipe(stream, await local.dial(agent_id, port, undefined, { tls }));
  });
  return {
    isDaemon: (agent_id) => local.isDaemon(agent_id),
    async dial(agent_id, port, signal, options) {
      const node = locateShard(shards, await index.findShardOf("agent", agent_id));
      if (node === "here") return local.dial(agent_id, port, signal, options);
      if (node === "moving") throw new WireError("refused", "No node has this workspace now.");
      const target: Target = { agent_id, port, tls: options?.tls ?? false };
      const opened = links.open(node, AGENT, target);
      const callerGone = Promise.withResolvers<never>();
      const onAbort = (): void => callerGone.reject(new WireError("closed", "The caller has gone."));
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted) onAbort();
      try {
        return await Promise.race([opened, callerGone.promise]);
      } catch (error) {
        opened.then(
          (late) => late.reset("The caller has gone."),
          () => undefined,
        );
        throw error;
      } finally {
        signal?.removeEventListener("abort", onAbort);
      }
    },
  };
};

// Jobs across nodes: the job queues communicate over the links between nodes (actors/runtime/remote-jobs.ts). The node that owns a
// workspace shuts down its agents, even if another node runs the build.

const JOBS = "jobs";
const SHUT_DOWN = "shut_down";
/** The kind of ID by which a job's owner is looked up. */
const OWNER_KINDS = { build: "workspace", import: "template_version", dry_run: "job" } as const;

/** The shard of dry runs by an older version, which do not include one. */
const NO_SHARD = -1;

const openJobs = ({ clock, shards, index, links }: LocationDeps, { queue, work }: JobNeeds): RemoteJobs => {
  const jobs = new RemoteJobs({
    shards,
    clock,
    queue,
    ask: (node, question) => links.call(node, JOBS, question),
    submit: (job) => submit(work(), job),
    async requeue(owner, job_id) {
      const shard = await index.findShardOf(OWNER_KINDS[owner.kind], owner.id);
      // If the shard has moved, its new owner requeues the job.
      if (shard !== undefined && shards.has(shard)) await requeue(work(), owner, job_id);
    },
  });
  links.serve(JOBS, (question) => jobs.answer(question as RemoteJobRequest));
  return jobs;
};

const submit = (
  { builds, imports, runs }: JobWork,
  { id, of: owner, created_at, urgency, tags = {}, part = NO_SHARD }: NamedJob,
): void => {
  const job = { job_id: id, created_at, tags, part };
  if (owner?.kind === "build") builds.submit({ ...job, workspace_id: owner.id, urgency });
  if (owner?.kind === "import") imports.submit({ ...job, version_id: owner.id });
  if (owner?.kind === "dry_run") runs.submit(job);
};

const requeue = async ({ workspaces, versions, dryRuns }: JobWork, { kind, id }: JobOwner, job_id: string) => {
  try {
    if (kind === "build") await workspaces.ask(id, "requeueJob", { job_id, moved: true });
    if (kind === "import") await versions.ask(id, "resume", { moved: true });
    if (kind === "dry_run") await dryRuns.ask(id, "requeueJob", { moved: true });
  } catch (error) {
    // The job is still active in the database; its timer ends it.
    log("builds").error("job {job_id} cannot be taken up again: {error}", { job_id, error });
  }
};

const shutDownOnOwner = (
  { clock, shards, index, links }: LocationDeps,
  workspaces: () => Directory<WorkspaceActor>,
  shutDown: ShutDownAgents,
): ShutDownOfBuild => {
  links.serve(SHUT_DOWN, async (requested) => {
    const { workspace_id, job_id } = requested as WorkedBuild;
    const report = new JobReport(clock, (text) => workspaces().ask(workspace_id, "say", { job_id, ...text }));
    await shutDown(workspace_id, report, new AbortController().signal);
    await report.whenSettled();
  });
  return async (build, report, signal) => {
    const node = locateShard(shards, await index.findShardOf("workspace", build.workspace_id));
    if (node === "here") return shutDown(build.workspace_id, report, signal);
    if (node === "moving") return;
    const canceled = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    const requested = links.call(node, SHUT_DOWN, build).catch((error) => {
      log("builds").warn("the agents of {id} could not be ended in order: {error}", { id: build.workspace_id, error });
    });
    await Promise.race([requested, canceled]);
  };
};

// Work that only the first node does, on behalf of all. Example: a provider that accepts each refresh token once would revoke the grant if
// two nodes used the same token.

/** Another node may be about to become the first one. */
const RETRY_INTERVAL_MS = 500;
const MAX_TRIES = 30;

const runOnFirst = <Args>(
  { clock, shards, links }: Pick<LocationDeps, "clock" | "shards" | "links">,
  service: string,
  run: (args: Args) => Promise<void>,
): ((args: Args) => Promise<void> | undefined) => {
  links.serve(service, async (args) => {
    if (!shards.isFirst) throw new NotStartedError("The node is not the first one.");
    await run(args as Args);
  });
  // Calls whose response was lost are repeated: on the first node, a repeated call joins the work in progress or finds it done.
  const isTemporary = (error: unknown): boolean =>
    error instanceof NotStartedError || (error instanceof CommitError && error.reason === "unknown");
  return (args) => {
    if (shards.isFirst) return undefined;
    const ask = async (): Promise<void> => {
      const first = shards.nodeOf(FIRST_SHARD);
      if (!first) throw new NotStartedError("No node is the first one now.");
      await links.call(first, service, args);
    };
    return retry(clock, ask, (error, failures) =>
      isTemporary(error) && failures < MAX_TRIES ? RETRY_INTERVAL_MS : undefined,
    );
  };
};

// Information that each node has for itself, collected from all nodes: its view of the private network, unstored usage, its models.

const NETWORK = "network";
/** Answers that take longer are left out. */
const ANSWER_TIMEOUT_MS = 2_000;

const share = (
  { clock, shards, links }: Pick<LocationDeps, "clock" | "shards" | "links">,
  service: string,
  run: () => Promise<unknown>,
): (() => Promise<unknown[]>) => {
  links.serve(service, run);
  return async () => {
    const answers: unknown[] = [];
    const requested = listOtherNodes(shards).map(async (node) => {
      try {
        answers.push(await links.call(node, service, {}));
      } catch (error) {
        log("cluster").debug("node {node} does not answer {service}: {error}", { node: node.id, service, error });
      }
    });
    await finishesWithin(clock, ANSWER_TIMEOUT_MS, Promise.all(requested));
    // A copy, so that late answers do not change the result.
    return [...answers];
  };
};

// Connects the relays of nodes over the links between them (src/domain/tailnet/remote-relay.ts).

const RELAY = "relay";

const connectRelays = ({ clock, shards, links }: LocationDeps, relay: Relay): void => {
  const others = new RemoteRelay({ clock, shards, relay, send: (node, message) => links.call(node, RELAY, message) });
  relay.others = others;
  links.serve(RELAY, async (message, from) => others.receive(from, message as RelayMessage));
};

// Connects the coordinators of nodes over the links between them (src/domain/tailnet/remote-tunnels.ts).

const COORDINATOR = "coordinator";
const LOST_CLIENTS = "lost_clients";

type WatchedClients = { readonly client_ids: readonly string[] };
type RevokedAccess = { readonly client_id: string; readonly agent_id?: string };

export const connectCoordinators = ({ clock, shards, index, links }: LocationDeps, coordinator: Coordinator): void => {
  coordinator.others = new RemoteTunnels({
    clock,
    shards,
    shardOf: (agent_id) => index.findShardOf("agent", agent_id),
    join: (node, client) => createTailnetClient({ open: () => links.open(node, COORDINATOR, client) }).coordinate(),
    revoke: (node, client_id, agent_id) => links.call(node, COORDINATOR, { client_id, agent_id }),
    confirm: (node, client_ids) => links.call(node, LOST_CLIENTS, { client_ids }),
  });
  const lostGuests = new LostGuests(clock, coordinator);
  links.serve(LOST_CLIENTS, async (args) => {
    for (const id of (args as WatchedClients).client_ids) lostGuests.confirm(id);
  });
  links.serve(COORDINATOR, async (args) => {
    const { client_id, agent_id } = args as RevokedAccess;
    coordinator.revoke(client_id, agent_id);
  });
  /** Checks only that this node has the agent: the client's own node has checked its access. */
  const refuse = async (agent_id: string): Promise<string | undefined> => {
    const shard = await index.findShardOf("agent", agent_id);
    return shard !== undefined && shards.has(shard) ? undefined : "the agent is not at this node";
  };
  links.serveStreams(COORDINATOR, async (args, stream) => {
    const { id, holder } = args as RemoteClient;
    const peer = { id, ...(holder && { holder }), isWatched: true, isGuest: true, rules: createClientRules(refuse) };
    const router = createRouter(Tailnet, {
      coordinate: (requests, { signal }) => coordinator.serve(peer, requests, signal),
    });
    void serve(stream, router, { clock }).finally(() => lostGuests.onEnd(id));
  });
};
