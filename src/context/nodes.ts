// Communication between cluster nodes: messages to actors, access to agents, jobs, tokens, packets, tunnels, views, and events. Unused on a
// single server.

import { JobReport } from "#actors/job/report.ts";
import type { ModelSettings } from "#actors/models/model-settings.ts";
import type { Actor } from "#actors/runtime/actor.ts";
import type { Directory } from "#actors/runtime/directory.ts";
import { type Events, HEARD_AMONG_ACTIVE, HEARD_EVERYWHERE } from "#actors/runtime/events.ts";
import type { ActorPlace, Elsewhere } from "#actors/runtime/far-asks.ts";
import { FarJobs, type FarQuestion } from "#actors/runtime/far-jobs.ts";
import type { JobQueue } from "#actors/runtime/job-queue.ts";
import type { JobOwner, NamedJob } from "#actors/runtime/other-queues.ts";
import type { Imports, TemplateVersionActor } from "#actors/template-version/actor.ts";
import type { DryRunActor, DryRuns } from "#actors/template-version/dry-run-actor.ts";
import type { Usage } from "#actors/usage/usage.ts";
import type { WorkspaceActor } from "#actors/workspace/actor.ts";
import type { WorkedBuild } from "#actors/workspace/build-runner.ts";
import type { Builds } from "#actors/workspace/effects.ts";
import type { Clock } from "#base/clock.ts";
import type { Config } from "#base/config.ts";
import { NotBegun } from "#base/errors.ts";
import { log } from "#base/log.ts";
import { ALL_PARTS, FIRST_PART, type OtherNode, otherNodes, type Parts } from "#base/parts.ts";
import { retry, within } from "#base/retry.ts";
import type { Topics } from "#base/topics.ts";
import { CommitError, type Store } from "#db/engine/store.ts";
import type { PartIndex } from "#db/part-index.ts";
import type { Parted } from "#db/part-of.ts";
import type { Word } from "#db/pg/told/notice.ts";
import type { Links, RefreshElsewhere } from "#domain/external-auth/links.ts";
import { FarRelay, type RelayWords } from "#domain/tailnet/far-relay.ts";
import { type FarClient, FarTunnels } from "#domain/tailnet/far-tunnels.ts";
import type { Network, NetworkView } from "#domain/tailnet/network.ts";
import type { NodeLinks } from "#src/cluster/node-link.ts";
import type { Report } from "#src/provisioners/provisioner.ts";
import { type Coordinator, clientRules, LOST_MS, type Relay } from "#src/tailnet/index.ts";
import { type AgentDialer, pipe, routerFor, serve, Tailnet, tailnetClient, WireError } from "#src/wire/index.ts";

// Actors on other nodes: located by the part of their ID and called remotely. The other side answers for the actors of this node.

/** Actors by the kind of their ID; a dry run is a job. */
export type ActorKind = Extract<Parted, "agent" | "chat" | "job" | "template_version" | "workspace">;

const ACTOR = "actor";

/** A message to an actor on another node. It includes the part, because an ID that is about to be created cannot be looked up there. */
type FarMessage = {
  readonly kind: ActorKind;
  readonly id: string;
  readonly part: number;
  readonly message: string;
  readonly args: unknown;
};

/** What a node needs to communicate with the others. */
export type Far = {
  readonly parts: Parts;
  readonly index: PartIndex;
  readonly links: Pick<NodeLinks, "call" | "serve">;
};

/** Returns the remote actors for a `Directory`. */
export const farActors = ({ parts, index, links }: Far, kind: ActorKind): Elsewhere => {
  const placeOf = (part: number | undefined): ActorPlace =>
    part === undefined || parts.has(part) ? "here" : (parts.nodeOf(part) ?? "nobody");
  const send = (node: OtherNode, message: FarMessage) => links.call(node, ACTOR, message);
  return {
    placeOf(id) {
      const part = index.of(kind, id);
      return part instanceof Promise ? part.then(placeOf) : placeOf(part);
    },
    ask(node, id, message, args) {
      const part = index.of(kind, id);
      // Normally known, because a place was found by it; it is evicted only after a hundred thousand other lookups.
      if (part instanceof Promise || part === undefined) return Promise.reject(new NotBegun("It is looked for again."));
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
export const answerFarActors = (
  { parts, index, links }: Far,
  directories: Readonly<Record<ActorKind, AnyDirectory>>,
): void =>
  links.serve(ACTOR, async (asked) => {
    const { kind, id, part, message, args } = asked as FarMessage;
    const actors = directories[kind];
    if (!parts.has(part) || actors.isStopping) throw new NotBegun("The node does not have this part.");
    index.note(kind, id, part);
    return actors.askHere(id, message, args);
  });

// Agents whose tunnels end at another node: that node dials, and the bytes pass through it. Chats need this, because a claimed prebuild or
// someone else's workspace belongs to a different part than the chat.

const AGENT = "agent";

type Target = { readonly agent_id: string; readonly port: number; readonly tls: boolean };

export type FarAgents = {
  readonly parts: Parts;
  readonly index: PartIndex;
  readonly links: Pick<NodeLinks, "open" | "serveStreams">;
};

/** Dials agents on the node that has their tunnel. */
export const farDialer = ({ parts, index, links }: FarAgents, here: AgentDialer): AgentDialer => ({
  isDaemon: (agent_id) => here.isDaemon(agent_id),
  async dial(agent_id, port, signal, options) {
    const part = await index.of("agent", agent_id);
    if (part === undefined || parts.has(part)) return here.dial(agent_id, port, signal, options);
    const node = parts.nodeOf(part);
    if (!node) throw new WireError("refused", "No node has this workspace now.");
    const target: Target = { agent_id, port, tls: options?.tls ?? false };
    const opened = links.open(node, AGENT, target);
    const gone = Promise.withResolvers<never>();
    const leave = (): void => gone.reject(new WireError("closed", "The caller has gone."));
    signal?.addEventListener("abort", leave, { once: true });
    if (signal?.aborted) leave();
    try {
      return await Promise.race([opened, gone.promise]);
    } catch (error) {
      opened.then(
        (late) => late.reset("The caller has gone."),
        () => undefined,
      );
      throw error;
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  },
});

/** Dials agents on behalf of other nodes. */
export const answerFarDials = ({ parts, index, links }: FarAgents, here: AgentDialer): void =>
  links.serveStreams(AGENT, async (args, stream) => {
    const { agent_id, port, tls } = args as Target;
    const part = await index.of("agent", agent_id);
    if (part === undefined || !parts.has(part)) throw new NotBegun("The node does not have this workspace.");
    void pipe(stream, await here.dial(agent_id, port, undefined, { tls }));
  });

// Jobs across nodes: the job queues communicate over the links between nodes (actors/runtime/far-jobs.ts), and the node that owns a
// workspace ends its agents, whichever node runs the build.

const JOBS = "jobs";
const SHUT_DOWN = "shut_down";
/** The kind of ID by which a job's owner is looked up. */
const PARTED = { build: "workspace", import: "template_version", dry_run: "job" } as const;

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

export const farJobs = ({ parts, index, links }: Far, clock: Clock, { queue, work }: JobNeeds): FarJobs => {
  const far = new FarJobs({
    parts,
    clock,
    queue,
    ask: (node, question) => links.call(node, JOBS, question),
    submit: (job) => submit(work(), job),
    async requeue(of, job_id) {
      const part = await index.of(PARTED[of.kind], of.id);
      // The new owner asks too.
      if (part !== undefined && parts.has(part)) await requeue(work(), of, job_id);
    },
  });
  links.serve(JOBS, (question) => far.answer(question as FarQuestion));
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
type ShutDown = (workspace_id: string, report: Report, signal: AbortSignal) => Promise<void>;

/** Like `ShutDown`, on the node that owns the workspace; its reports go to the build's log. */
export const shutDownByOwner = (
  far: Far | undefined,
  clock: Clock,
  workspaces: () => Directory<WorkspaceActor>,
  shutDown: ShutDown,
): ((build: WorkedBuild, report: Report, signal: AbortSignal) => Promise<void>) => {
  if (!far) return ({ workspace_id }, report, signal) => shutDown(workspace_id, report, signal);
  const { parts, index, links } = far;
  links.serve(SHUT_DOWN, async (asked) => {
    const { workspace_id, job_id } = asked as WorkedBuild;
    const report = new JobReport(clock, (said) => workspaces().ask(workspace_id, "say", { job_id, ...said }));
    await shutDown(workspace_id, report, new AbortController().signal);
    await report.settled();
  });
  return async (build, report, signal) => {
    const part = await index.of("workspace", build.workspace_id);
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
const AGAIN_MS = 500;
const TRIES = 30;

type RefreshNeeds = Pick<Far, "parts" | "links">;

/** For `Links`: undefined on the first node. */
export const farRefreshes =
  ({ parts, links }: RefreshNeeds, clock: Clock): RefreshElsewhere =>
  (asked) => {
    if (parts.isFirst) return undefined;
    const ask = async (): Promise<void> => {
      const first = parts.nodeOf(FIRST_PART);
      if (!first) throw new NotBegun("No node is the first one now.");
      await links.call(first, EXTERNAL_AUTH, asked);
    };
    // The outcome of a lost response is known to the first node: a repeated call joins the refresh in progress or finds it done.
    const isPassing = (error: unknown): boolean =>
      error instanceof NotBegun || (error instanceof CommitError && error.reason === "unknown");
    return retry(clock, ask, (error, failures) => (isPassing(error) && failures < TRIES ? AGAIN_MS : undefined));
  };

/** Refreshes tokens on behalf of other nodes. */
export const answerFarRefreshes = ({ parts, links }: RefreshNeeds, here: Pick<Links, "refresh">): void =>
  links.serve(EXTERNAL_AUTH, async (asked) => {
    if (!parts.isFirst) throw new NotBegun("The node is not the first one.");
    await here.refresh(asked as Parameters<Links["refresh"]>[0]);
  });

// Connects the relays of nodes over the links between them (src/domain/tailnet/far-relay.ts).

const RELAY = "relay";

export const joinRelays = ({ parts, links }: Far, clock: Clock, relay: Relay): void => {
  const far = new FarRelay({ clock, parts, relay, say: (node, words) => links.call(node, RELAY, words) });
  relay.others = far;
  links.serve(RELAY, async (words, from) => far.hear(from, words as RelayWords));
};

// Connects the coordinators of nodes over the links between them (src/domain/tailnet/far-tunnels.ts).

const COORDINATOR = "coordinator";

type Revoked = { readonly client_id: string; readonly agent_id?: string };

export const joinCoordinators = (
  { parts, index, links }: Far & FarAgents,
  clock: Clock,
  coordinator: Coordinator,
): void => {
  coordinator.others = new FarTunnels({
    clock,
    parts,
    partOf: (agent_id) => index.of("agent", agent_id),
    join: (node, client) => tailnetClient({ open: () => links.open(node, COORDINATOR, client) }).coordinate(),
    revoke: (node, client_id, agent_id) => links.call(node, COORDINATOR, { client_id, agent_id }),
  });
  links.serve(COORDINATOR, async (args) => {
    const { client_id, agent_id } = args as Revoked;
    coordinator.revoke(client_id, agent_id);
  });
  /** The client's access was checked on its own node. */
  const refuse = async (agent_id: string): Promise<string | undefined> => {
    const part = await index.of("agent", agent_id);
    return part !== undefined && parts.has(part) ? undefined : "the agent is not at this node";
  };
  links.serveStreams(COORDINATOR, async (args, stream) => {
    const { id, holder } = args as FarClient;
    const peer = { id, ...(holder && { holder }), isWatched: true, isGuest: true, rules: clientRules(refuse) };
    const router = routerFor(Tailnet, {
      coordinate: (requests, { signal }) => coordinator.serve(peer, requests, signal),
    });
    void serve(stream, router, { clock }).finally(() => {
      if (coordinator.isLost(id)) clock.after(LOST_MS, () => coordinator.forgetLost(id));
    });
  });
};

// Cluster-wide views of what each node knows for itself: the private network, and usage that is not yet stored.

const NETWORK = "network";
const FLUSH = "flush";
/** A slower node is left out. */
const ANSWER_MS = 2_000;

type ViewNeeds = Pick<Far, "parts" | "links">;

/** Returns the responses of all other nodes in any order. Nodes that do not respond are left out. */
const askAll = async ({ parts, links }: ViewNeeds, clock: Clock, service: string): Promise<unknown[]> => {
  const answers: unknown[] = [];
  const asked = otherNodes(parts).map(async (node) => {
    try {
      answers.push(await links.call(node, service, {}));
    } catch (error) {
      log("cluster").debug("node {node} does not answer {service}: {error}", { node: node.id, service, error });
    }
  });
  await within(clock, ANSWER_MS, Promise.all(asked));
  return [...answers];
};

/** The private network of all nodes. */
export const shareNetwork = (far: ViewNeeds, clock: Clock, network: Network): void => {
  far.links.serve(NETWORK, async () => network.here);
  network.others = async () => (await askAll(far, clock, NETWORK)) as NetworkView[];
};

/** Usage reports include what any node has recorded. */
export const shareUse = (far: ViewNeeds, clock: Clock, usage: Flushed): void => {
  far.links.serve(FLUSH, () => usage.flush());
  usage.flushOthers = async () => void (await askAll(far, clock, FLUSH));
};

type Flushed = { flush(): Promise<void>; flushOthers: () => Promise<void> };

// Events shared between nodes: which kinds, and how they reach the topics of this node.

type Shared = { readonly store: Store; readonly topics: Topics<Events> };

export type HeardKind = (typeof HEARD_AMONG_ACTIVE)[number];

/** Returns the kinds of events that are received from other nodes with these settings. */
export const listSharedEventKinds = ({ cluster_active }: Pick<Config, "cluster_active">): readonly HeardKind[] =>
  cluster_active === "every" ? HEARD_AMONG_ACTIVE : HEARD_EVERYWHERE;

export const isHeard = (heard: readonly HeardKind[], kind: string): kind is HeardKind | "missed" =>
  kind === "missed" || heard.some((one) => one === kind);

/** Publishes events of other nodes; without events, publishes that some may have been missed. */
export const hearing =
  (topics: Topics<Events>, heard: readonly HeardKind[]) =>
  (words: readonly Word[] | undefined): void => {
    if (!words) topics.publish("missed", "", {});
    for (const { kind, id, event } of words ?? [])
      if (isHeard(heard, kind)) topics.publish(kind, id, event as never, true);
  };

/** Sends events of this node to the other nodes, but not events that came from another node. */
export const tellOthers = ({ store, topics, parts }: Shared & { readonly parts: Parts }): void => {
  if (!store.tell) return;
  for (const kind of parts === ALL_PARTS ? HEARD_EVERYWHERE : HEARD_AMONG_ACTIVE) {
    topics.subscribeAll(kind, (id, event, isFar) => {
      if (!isFar) store.tell?.(kind, id, event);
    });
  }
};

type Hearing = Shared & { readonly modelSettings: Pick<ModelSettings, "loadSoon"> };

/** Starts publishing events of other active nodes on this one. */
export const receiveFromOtherNodes = ({ store, topics, modelSettings }: Hearing): void => {
  topics.subscribeAll("models_changed", (_, __, isFar) => isFar && modelSettings.loadSoon());
  topics.subscribeAll("missed", () => modelSettings.loadSoon());
  store.hear?.(hearing(topics, HEARD_AMONG_ACTIVE));
};

// Services this node provides to the others when all nodes are active.

type Directories = Parameters<typeof answerFarActors>[1];

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

export const answerOthers = (far: Far & FarAgents, offers: Offers): void => {
  const { agents: agent, chats: chat, dryRuns: job, versions: template_version, workspaces: workspace } = offers;
  answerFarDials(far, offers.dialer);
  answerFarActors(far, { agent, chat, job, template_version, workspace });
  answerFarRefreshes(far, offers.links);
  shareUse(far, offers.clock, offers.usage);
};
