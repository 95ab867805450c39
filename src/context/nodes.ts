// Communication between cluster nodes: messages to actors, access to agents, jobs, tokens, packets, tunnels, views, and events. Unused on a
// single server.

import { JobReport } from "#actors/job/report.ts";
import type { ModelSettings } from "#actors/models/model-settings.ts";
import type { Actor } from "#actors/runtime/actor.ts";
import type { Directory } from "#actors/runtime/directory.ts";
import { EVENTS_FOR_ACTIVE_NODES, EVENTS_FOR_ALL_NODES, type Events } from "#actors/runtime/events.ts";
import type { JobQueue } from "#actors/runtime/job-queue.ts";
import type { ActorPlace, RemoteActors } from "#actors/runtime/remote-asks.ts";
import { type RemoteJobRequest, RemoteJobs } from "#actors/runtime/remote-jobs.ts";
import type { JobOwner, NamedJob } from "#actors/runtime/remote-queues.ts";
import type { Imports, TemplateVersionActor } from "#actors/template-version/actor.ts";
import type { DryRunActor, DryRuns } from "#actors/template-version/dry-run-actor.ts";
import type { Usage } from "#actors/usage/usage.ts";
import type { WorkspaceActor } from "#actors/workspace/actor.ts";
import type { WorkedBuild } from "#actors/workspace/build-runner.ts";
import type { Builds } from "#actors/workspace/effects.ts";
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { NotStartedError } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { ALL_PARTS, FIRST_PART, listOtherNodes, type OtherNode, type Parts } from "#base/parts.ts";
import { finishesWithin, retry } from "#base/retry.ts";
import type { Topics } from "#base/topics.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import type { PartedKind } from "#db/find-shard.ts";
import type { PartIndex } from "#db/part-index.ts";
import type { BroadcastEvent } from "#db/pg/notices/notice.ts";
import type { Links, RefreshElsewhere } from "#domain/external-auth/links.ts";
import type { Network, NetworkView } from "#domain/tailnet/network.ts";
import { type RelayMessage, RemoteRelay } from "#domain/tailnet/remote-relay.ts";
import { type RemoteClient, RemoteTunnels } from "#domain/tailnet/remote-tunnels.ts";
import type { NodeLinks } from "#src/cluster/node-link.ts";
import type { Report } from "#src/provisioners/provisioner.ts";
import { type Coordinator, createClientRules, LOST_TTL_MS, type Relay } from "#src/tailnet/index.ts";
import {
  type AgentDialer,
  createRouter,
  createTailnetClient,
  pipe,
  serve,
  Tailnet,
  WireError,
} from "#src/wire/index.ts";

// Actors on other nodes: located by the part of their ID and called remotely. The other side answers for the actors of this node.

/** Actors by the kind of their ID; a dry run is a job. */
export type ActorKind = Extract<PartedKind, "agent" | "chat" | "job" | "template_version" | "workspace">;

const ACTOR = "actor";

/** A message to an actor on another node. It includes the part, because an ID that is about to be created cannot be looked up there. */
type RemoteMessage = {
  readonly kind: ActorKind;
  readonly id: string;
  readonly part: number;
  readonly message: string;
  readonly args: unknown;
};

/** What a node needs to communicate with the others. */
export type NodeDeps = {
  readonly parts: Parts;
  readonly index: PartIndex;
  readonly links: Pick<NodeLinks, "call" | "serve">;
};

/** Returns the remote actors for a `Directory`. */
export const createRemoteActors = ({ parts, index, links }: NodeDeps, kind: ActorKind): RemoteActors => {
  const locate = (part: number | undefined): ActorPlace =>
    part === undefined || parts.has(part) ? "here" : (parts.nodeOf(part) ?? "unowned");
  const send = (node: OtherNode, message: RemoteMessage) => links.call(node, ACTOR, message);
  return {
    locate(id) {
      const part = index.findPartOf(kind, id);
      return part instanceof Promise ? part.then(locate) : locate(part);
    },
    ask(node, id, message, args) {
      const part = index.findPartOf(kind, id);
      // Normally known, because a place was found by it; it is evicted only after a hundred thousand other lookups.
      if (part instanceof Promise || part === undefined)
        return Promise.reject(new NotStartedError("It is looked for again."));
      return send(node, { kind, id, part, message, args });
    },
    expect: (id, part) => index.note(kind, id, part),
  };
};

// biome-ignore lint/suspicious/noExplicitAny: messages come by their names
type AnyDirectory = Pick<Directory<Actor<any> & Record<string, any>>, "askHere" | "isStopping">;

/**
 * Handles other nodes' messages to the actors of this one. A message for a part that has moved in the meantime is neither handled nor
 * forwarded.
 */
export const serveActors = (
  { parts, index, links }: NodeDeps,
  directories: Readonly<Record<ActorKind, AnyDirectory>>,
): void =>
  links.serve(ACTOR, async (asked) => {
    const { kind, id, part, message, args } = asked as RemoteMessage;
    const actors = directories[kind];
    if (!parts.has(part) || actors.isStopping) throw new NotStartedError("The node does not have this part.");
    index.note(kind, id, part);
    return actors.askHere(id, message, args);
  });

// Agents whose tunnels end at another node: that node dials, and the bytes pass through it. Chats need this, because a claimed prebuild or
// someone else's workspace belongs to a different part than the chat.

const AGENT = "agent";

type Target = { readonly agent_id: string; readonly port: number; readonly tls: boolean };

export type RemoteAgentDeps = {
  readonly parts: Parts;
  readonly index: PartIndex;
  readonly links: Pick<NodeLinks, "open" | "serveStreams">;
};

/** Dials agents on the node that has their tunnel. */
export const createRemoteDialer = ({ parts, index, links }: RemoteAgentDeps, here: AgentDialer): AgentDialer => ({
  isDaemon: (agent_id) => here.isDaemon(agent_id),
  async dial(agent_id, port, signal, options) {
    const part = await index.findPartOf("agent", agent_id);
    if (part === undefined || parts.has(part)) return here.dial(agent_id, port, signal, options);
    const node = parts.nodeOf(part);
    if (!node) throw new WireError("refused", "No node has this workspace now.");
    const target: Target = { agent_id, port, tls: options?.tls ?? false };
    const opened = links.open(node, AGENT, target);
    const gone = Promise.withResolvers<never>();
    const onAbort = (): void => gone.reject(new WireError("closed", "The caller has gone."));
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
    try {
      return await Promise.race([opened, gone.promise]);
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
});

/** Dials agents on behalf of other nodes. */
export const serveDials = ({ parts, index, links }: RemoteAgentDeps, here: AgentDialer): void =>
  links.serveStreams(AGENT, async (args, stream) => {
    const { agent_id, port, tls } = args as Target;
    const part = await index.findPartOf("agent", agent_id);
    if (part === undefined || !parts.has(part)) throw new NotStartedError("The node does not have this workspace.");
    void pipe(stream, await here.dial(agent_id, port, undefined, { tls }));
  });

// Jobs across nodes: the job queues communicate over the links between nodes (actors/runtime/remote-jobs.ts), and the node that owns a
// workspace ends its agents, whichever node runs the build.

const JOBS = "jobs";
const SHUT_DOWN = "shut_down";
/** The kind of ID by which a job's owner is looked up. */
const OWNER_KINDS = { build: "workspace", import: "template_version", dry_run: "job" } as const;

/** Older dry runs do not include their part. */
const NO_PART = -1;

/** How builds, imports and dry runs are run here, and who owns them. */
export type JobWork = {
  readonly builds: Builds;
  readonly imports: Imports;
  readonly runs: DryRuns;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly versions: Directory<TemplateVersionActor>;
  readonly dryRuns: Directory<DryRunActor>;
};

type JobNeeds = { readonly queue: () => JobQueue; readonly work: () => JobWork };

export const createRemoteJobs = (
  { parts, index, links }: NodeDeps,
  clock: Clock,
  { queue, work }: JobNeeds,
): RemoteJobs => {
  const far = new RemoteJobs({
    parts,
    clock,
    queue,
    ask: (node, question) => links.call(node, JOBS, question),
    submit: (job) => submit(work(), job),
    async requeue(of, job_id) {
      const part = await index.findPartOf(OWNER_KINDS[of.kind], of.id);
      // The new owner asks too.
      if (part !== undefined && parts.has(part)) await requeue(work(), of, job_id);
    },
  });
  links.serve(JOBS, (question) => far.answer(question as RemoteJobRequest));
  return far;
};

const submit = (
  { builds, imports, runs }: JobWork,
  { id, of, created_at, urgency, tags = {}, part = NO_PART }: NamedJob,
): void => {
  const job = { job_id: id, created_at, tags, part };
  if (of?.kind === "build") builds.submit({ ...job, workspace_id: of.id, urgency });
  if (of?.kind === "import") imports.submit({ ...job, version_id: of.id });
  if (of?.kind === "dry_run") runs.submit(job);
};

const requeue = async ({ workspaces, versions, dryRuns }: JobWork, { kind, id }: JobOwner, job_id: string) => {
  try {
    if (kind === "build") await workspaces.ask(id, "requeueJob", { job_id, moved: true });
    if (kind === "import") await versions.ask(id, "resume", { moved: true });
    if (kind === "dry_run") await dryRuns.ask(id, "requeueJob", { moved: true });
  } catch (error) {
    // The job is still open on disk; its timer ends it.
    log("builds").error("job {job_id} cannot be taken up again: {error}", { job_id, error });
  }
};

/** Shuts down the agents of a workspace in order, on this node. */
type ShutDownAgents = (workspace_id: string, report: Report, signal: AbortSignal) => Promise<void>;

/** Like `ShutDownAgents`, on the node that owns the workspace; its reports go to the build's log. */
export const shutDownOnOwner = (
  far: NodeDeps | undefined,
  clock: Clock,
  workspaces: () => Directory<WorkspaceActor>,
  shutDown: ShutDownAgents,
): ((build: WorkedBuild, report: Report, signal: AbortSignal) => Promise<void>) => {
  if (!far) return ({ workspace_id }, report, signal) => shutDown(workspace_id, report, signal);
  const { parts, index, links } = far;
  links.serve(SHUT_DOWN, async (asked) => {
    const { workspace_id, job_id } = asked as WorkedBuild;
    const report = new JobReport(clock, (said) => workspaces().ask(workspace_id, "say", { job_id, ...said }));
    await shutDown(workspace_id, report, new AbortController().signal);
    await report.whenSettled();
  });
  return async (build, report, signal) => {
    const part = await index.findPartOf("workspace", build.workspace_id);
    if (part === undefined || parts.has(part)) return shutDown(build.workspace_id, report, signal);
    const node = parts.nodeOf(part);
    if (!node) return;
    const canceled = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    const asked = links.call(node, SHUT_DOWN, build).catch((error) => {
      log("builds").warn("the agents of {id} could not be ended in order: {error}", { id: build.workspace_id, error });
    });
    await Promise.race([asked, canceled]);
  };
};

// Tokens of linked accounts are refreshed only by the first node, on behalf of all: a provider that accepts each refresh token once would
// revoke the grant if two nodes used it.

const EXTERNAL_AUTH = "external_auth";
/** Another node may be about to become the first one. */
const RETRY_INTERVAL_MS = 500;
const MAX_TRIES = 30;

type RefreshNeeds = Pick<NodeDeps, "parts" | "links">;

/** For `Links`: undefined on the first node. */
export const createRemoteRefresh =
  ({ parts, links }: RefreshNeeds, clock: Clock): RefreshElsewhere =>
  (asked) => {
    if (parts.isFirst) return undefined;
    const ask = async (): Promise<void> => {
      const first = parts.nodeOf(FIRST_PART);
      if (!first) throw new NotStartedError("No node is the first one now.");
      await links.call(first, EXTERNAL_AUTH, asked);
    };
    // The outcome of a lost response is known to the first node: a repeated call joins the refresh in progress or finds it done.
    const isTemporary = (error: unknown): boolean =>
      error instanceof NotStartedError || (error instanceof CommitError && error.reason === "unknown");
    return retry(clock, ask, (error, failures) =>
      isTemporary(error) && failures < MAX_TRIES ? RETRY_INTERVAL_MS : undefined,
    );
  };

/** Refreshes tokens on behalf of other nodes. */
export const serveRefreshes = ({ parts, links }: RefreshNeeds, here: Pick<Links, "refresh">): void =>
  links.serve(EXTERNAL_AUTH, async (asked) => {
    if (!parts.isFirst) throw new NotStartedError("The node is not the first one.");
    await here.refresh(asked as Parameters<Links["refresh"]>[0]);
  });

// Connects the relays of nodes over the links between them (src/domain/tailnet/remote-relay.ts).

const RELAY = "relay";

export const connectRelays = ({ parts, links }: NodeDeps, clock: Clock, relay: Relay): void => {
  const far = new RemoteRelay({ clock, parts, relay, send: (node, words) => links.call(node, RELAY, words) });
  relay.others = far;
  links.serve(RELAY, async (words, from) => far.receive(from, words as RelayMessage));
};

// Connects the coordinators of nodes over the links between them (src/domain/tailnet/remote-tunnels.ts).

const COORDINATOR = "coordinator";

type RevokedAccess = { readonly client_id: string; readonly agent_id?: string };

export const connectCoordinators = (
  { parts, index, links }: NodeDeps & RemoteAgentDeps,
  clock: Clock,
  coordinator: Coordinator,
): void => {
  coordinator.others = new RemoteTunnels({
    clock,
    parts,
    partOf: (agent_id) => index.findPartOf("agent", agent_id),
    join: (node, client) => createTailnetClient({ open: () => links.open(node, COORDINATOR, client) }).coordinate(),
    revoke: (node, client_id, agent_id) => links.call(node, COORDINATOR, { client_id, agent_id }),
  });
  links.serve(COORDINATOR, async (args) => {
    const { client_id, agent_id } = args as RevokedAccess;
    coordinator.revoke(client_id, agent_id);
  });
  /** The client's access was checked on its own node. */
  const refuse = async (agent_id: string): Promise<string | undefined> => {
    const part = await index.findPartOf("agent", agent_id);
    return part !== undefined && parts.has(part) ? undefined : "the agent is not at this node";
  };
  links.serveStreams(COORDINATOR, async (args, stream) => {
    const { id, holder } = args as RemoteClient;
    const peer = { id, ...(holder && { holder }), isWatched: true, isGuest: true, rules: createClientRules(refuse) };
    const router = createRouter(Tailnet, {
      coordinate: (requests, { signal }) => coordinator.serve(peer, requests, signal),
    });
    void serve(stream, router, { clock }).finally(() => {
      if (coordinator.isLost(id)) clock.after(LOST_TTL_MS, () => coordinator.releaseLost(id));
    });
  });
};

// Cluster-wide views of what each node knows for itself: the private network, and usage that is not yet stored.

const NETWORK = "network";
const FLUSH = "flush";
/** A slower node is left out. */
const ANSWER_TIMEOUT_MS = 2_000;

type ViewNeeds = Pick<NodeDeps, "parts" | "links">;

/** Returns the responses of all other nodes in any order. Nodes that do not respond are left out. */
const callAll = async ({ parts, links }: ViewNeeds, clock: Clock, service: string): Promise<unknown[]> => {
  const answers: unknown[] = [];
  const asked = listOtherNodes(parts).map(async (node) => {
    try {
      answers.push(await links.call(node, service, {}));
    } catch (error) {
      log("cluster").debug("node {node} does not answer {service}: {error}", { node: node.id, service, error });
    }
  });
  await finishesWithin(clock, ANSWER_TIMEOUT_MS, Promise.all(asked));
  return [...answers];
};

/** The private network of all nodes. */
export const shareNetwork = (far: ViewNeeds, clock: Clock, network: Network): void => {
  far.links.serve(NETWORK, async () => network.here);
  network.others = async () => (await callAll(far, clock, NETWORK)) as NetworkView[];
};

/** Usage reports include what any node has recorded. */
export const shareUse = (far: ViewNeeds, clock: Clock, usage: FlushTarget): void => {
  far.links.serve(FLUSH, () => usage.flush());
  usage.flushOthers = async () => void (await callAll(far, clock, FLUSH));
};

type FlushTarget = { flush(): Promise<void>; flushOthers: () => Promise<void> };

// Events shared between nodes: which kinds, and how they reach the topics of this node.

type EventDeps = { readonly store: Store; readonly topics: Topics<Events> };

export type SharedEventKind = (typeof EVENTS_FOR_ACTIVE_NODES)[number];

/** Returns the kinds of events that are received from other nodes with these settings. */
export const listSharedEventKinds = ({ cluster_active }: Pick<Config, "cluster_active">): readonly SharedEventKind[] =>
  cluster_active === "every" ? EVENTS_FOR_ACTIVE_NODES : EVENTS_FOR_ALL_NODES;

export const isSharedEvent = (heard: readonly SharedEventKind[], kind: string): kind is SharedEventKind | "missed" =>
  kind === "missed" || heard.some((one) => one === kind);

/** Publishes events of other nodes; without events, publishes that some may have been missed. */
export const hearing =
  (topics: Topics<Events>, heard: readonly SharedEventKind[]) =>
  (words: readonly BroadcastEvent[] | undefined): void => {
    if (!words) topics.publish("missed", "", {});
    for (const { kind, id, event } of words ?? [])
      if (isSharedEvent(heard, kind)) topics.publish(kind, id, event as never, true);
  };

/** Sends events of this node to the other nodes, but not events that came from another node. */
export const broadcastEvents = ({ store, topics, parts }: EventDeps & { readonly parts: Parts }): void => {
  if (!store.broadcast) return;
  for (const kind of parts === ALL_PARTS ? EVENTS_FOR_ALL_NODES : EVENTS_FOR_ACTIVE_NODES) {
    topics.subscribeAll(kind, (id, event, isFar) => {
      if (!isFar) store.broadcast?.(kind, id, event);
    });
  }
};

type Hearing = EventDeps & { readonly modelSettings: Pick<ModelSettings, "loadSoon"> };

/** Starts publishing events of other active nodes on this one. */
export const receiveFromOtherNodes = ({ store, topics, modelSettings }: Hearing): void => {
  topics.subscribeAll("models_changed", (_, __, isFar) => isFar && modelSettings.loadSoon());
  topics.subscribeAll("missed", () => modelSettings.loadSoon());
  store.onBroadcast?.(hearing(topics, EVENTS_FOR_ACTIVE_NODES));
};

// Services this node provides to the others when all nodes are active.

type Directories = Parameters<typeof serveActors>[1];

/** The directories by their names in the context. */
type Offers = {
  readonly clock: Clock;
  readonly usage: Usage;
  readonly dialer: AgentDialer;
  readonly links: Links;
  readonly agents: Directories["agent"];
  readonly chats: Directories["chat"];
  readonly dryRuns: Directories["job"];
  readonly versions: Directories["template_version"];
  readonly workspaces: Directories["workspace"];
};

export const answerOthers = (far: NodeDeps & RemoteAgentDeps, offers: Offers): void => {
  const { agents: agent, chats: chat, dryRuns: job, versions: template_version, workspaces: workspace } = offers;
  serveDials(far, offers.dialer);
  serveActors(far, { agent, chat, job, template_version, workspace });
  serveRefreshes(far, offers.links);
  shareUse(far, offers.clock, offers.usage);
};
