// What this node asks of the other nodes of a cluster, and answers them: messages to actors, ways to agents, jobs, tokens, packets, tunnels,
// views, and events. One server without a cluster uses none of it.

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

// Actors of other nodes: where they are, by the part of their id, and how they are asked. The other side of it answers for those that this node has.

/** Actors by what their ids name: a dry run is a job. */
export type ActorKind = Extract<Parted, "agent" | "chat" | "job" | "template_version" | "workspace">;

const ACTOR = "actor";

/** A message to an actor of another node. Its part goes along, because what is about to be made cannot be looked up there. */
type FarMessage = {
  readonly kind: ActorKind;
  readonly id: string;
  readonly part: number;
  readonly message: string;
  readonly args: unknown;
};

/** What a node has to do with the others. */
export type Far = {
  readonly parts: Parts;
  readonly index: PartIndex;
  readonly links: Pick<NodeLinks, "call" | "serve">;
};

/** For the `Directory` of these actors. */
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
      // Known, since a place was found by it; let go in between only when a hundred thousand others were asked for.
      if (part instanceof Promise || part === undefined) return Promise.reject(new NotBegun("It is looked for again."));
      return send(node, { kind, id, part, message, args });
    },
    expect: (id, part) => index.note(kind, id, part),
  };
};

// biome-ignore lint/suspicious/noExplicitAny: messages come by their names
type AnyDirectory = Pick<Directory<Actor<any> & Record<string, any>>, "askHere" | "isStopping">;

/** Answers the messages of other nodes to the actors of this one. What has gone to another node in the meantime is not begun, and not passed on. */
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

// Agents whose tunnels end at another node: that node dials, and the bytes go through it. Chats need them: a claimed prebuild and someone else's
// workspace are of another part than the chat that works in them.

const AGENT = "agent";

type Target = { readonly agent_id: string; readonly port: number; readonly tls: boolean };

export type FarAgents = {
  readonly parts: Parts;
  readonly index: PartIndex;
  readonly links: Pick<NodeLinks, "open" | "serveStreams">;
};

/** Dials agents of other nodes there, and those of this one here. */
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

/** Dials for other nodes. */
export const answerFarDials = ({ parts, index, links }: FarAgents, here: AgentDialer): void =>
  links.serveStreams(AGENT, async (args, stream) => {
    const { agent_id, port, tls } = args as Target;
    const part = await index.of("agent", agent_id);
    if (part === undefined || !parts.has(part)) throw new NotBegun("The node does not have this workspace.");
    void pipe(stream, await here.dial(agent_id, port, undefined, { tls }));
  });

// Jobs across nodes: what the queue of one says to those of the others goes over the links between nodes (actors/runtime/far-jobs.ts), and the agents
// of a workspace are told to end by the node that has it, whoever does the build.

const JOBS = "jobs";
const SHUT_DOWN = "shut_down";
/** Anyone who owns a job, as ids are looked up. */
const PARTED = { build: "workspace", import: "template_version", dry_run: "job" } as const;

/** Older dry runs do not say theirs. */
const NO_PART = -1;

/** How builds, imports and dry runs are done here, and who owns them. */
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
      // Anyone who has it now asks, too.
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
    // On disk it is open: its timer ends it.
    log("builds").error("job {job_id} cannot be taken up again: {error}", { job_id, error });
  }
};

/** Lets the agents of a workspace end in order, here. */
type ShutDown = (workspace_id: string, report: Report, signal: AbortSignal) => Promise<void>;

/** The same by the node that has the workspace; what is said in the meantime goes from there to the build's log. */
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

// Tokens of linked accounts are renewed by the first node, for whichever node needs one: a provider that takes each refresh token once would end the
// grant where two nodes used it.

const EXTERNAL_AUTH = "external_auth";
/** Another node may be about to become the first one. */
const AGAIN_MS = 500;
const TRIES = 30;

type RefreshNeeds = Pick<Far, "parts" | "links">;

/** For `Links`: undefined at the first node. */
export const farRefreshes =
  ({ parts, links }: RefreshNeeds, clock: Clock): RefreshElsewhere =>
  (asked) => {
    if (parts.isFirst) return undefined;
    const ask = async (): Promise<void> => {
      const first = parts.nodeOf(FIRST_PART);
      if (!first) throw new NotBegun("No node is the first one now.");
      await links.call(first, EXTERNAL_AUTH, asked);
    };
    // Of an answer that was lost the first node knows: who asks again joins what is under way, or finds it done.
    const isPassing = (error: unknown): boolean =>
      error instanceof NotBegun || (error instanceof CommitError && error.reason === "unknown");
    return retry(clock, ask, (error, failures) => (isPassing(error) && failures < TRIES ? AGAIN_MS : undefined));
  };

/** Renews for other nodes. */
export const answerFarRefreshes = ({ parts, links }: RefreshNeeds, here: Pick<Links, "refresh">): void =>
  links.serve(EXTERNAL_AUTH, async (asked) => {
    if (!parts.isFirst) throw new NotBegun("The node is not the first one.");
    await here.refresh(asked as Parameters<Links["refresh"]>[0]);
  });

// The relays of nodes, joined over the links between them (src/domain/tailnet/far-relay.ts).

const RELAY = "relay";

export const joinRelays = ({ parts, links }: Far, clock: Clock, relay: Relay): void => {
  const far = new FarRelay({ clock, parts, relay, say: (node, words) => links.call(node, RELAY, words) });
  relay.others = far;
  links.serve(RELAY, async (words, from) => far.hear(from, words as RelayWords));
};

// The coordinators of nodes, joined over the links between them (src/domain/tailnet/far-tunnels.ts).

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
  /** Whether the client may was judged where it is. */
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

// What people are shown of a whole cluster where each node knows its own: the private network, and use that is not written yet.

const NETWORK = "network";
const FLUSH = "flush";
/** A node that is slower is left out. */
const ANSWER_MS = 2_000;

type ViewNeeds = Pick<Far, "parts" | "links">;

/** The answers of all other nodes, in no order. Nodes that do not answer are left out. */
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

/** Reports of use count what any node has noted. */
export const shareUse = (far: ViewNeeds, clock: Clock, usage: Flushed): void => {
  far.links.serve(FLUSH, () => usage.flush());
  usage.flushOthers = async () => void (await askAll(far, clock, FLUSH));
};

type Flushed = { flush(): Promise<void>; flushOthers: () => Promise<void> };

// What happens on one node and is heard on the others: which kinds of events, and how they come to the topics of this node.

type Shared = { readonly store: Store; readonly topics: Topics<Events> };

export type HeardKind = (typeof HEARD_AMONG_ACTIVE)[number];

/** What is heard of other nodes with these settings. */
export const heardWith = ({ cluster_active }: Pick<Config, "cluster_active">): readonly HeardKind[] =>
  cluster_active === "every" ? HEARD_AMONG_ACTIVE : HEARD_EVERYWHERE;

export const isHeard = (heard: readonly HeardKind[], kind: string): kind is HeardKind | "missed" =>
  kind === "missed" || heard.some((one) => one === kind);

/** Takes the words of other nodes; none where some may have been missed. */
export const hearing =
  (topics: Topics<Events>, heard: readonly HeardKind[]) =>
  (words: readonly Word[] | undefined): void => {
    if (!words) topics.publish("missed", "", {});
    for (const { kind, id, event } of words ?? [])
      if (isHeard(heard, kind)) topics.publish(kind, id, event as never, true);
  };

/** Sends events of this node to the other nodes, but not events that came from them. */
export const tellOthers = ({ store, topics, parts }: Shared & { readonly parts: Parts }): void => {
  if (!store.tell) return;
  for (const kind of parts === ALL_PARTS ? HEARD_EVERYWHERE : HEARD_AMONG_ACTIVE) {
    topics.subscribeAll(kind, (id, event, isFar) => {
      if (!isFar) store.tell?.(kind, id, event);
    });
  }
};

type Hearing = Shared & { readonly modelSettings: Pick<ModelSettings, "loadSoon"> };

/** What happens on other nodes that are active is heard here from now on. */
export const hearOthers = ({ store, topics, modelSettings }: Hearing): void => {
  topics.subscribeAll("models_changed", (_, __, isFar) => isFar && modelSettings.loadSoon());
  topics.subscribeAll("missed", () => modelSettings.loadSoon());
  store.hear?.(hearing(topics, HEARD_AMONG_ACTIVE));
};

// What this node does for the others of a cluster in which all work.

type Directories = Parameters<typeof answerFarActors>[1];

/** The directories by the names that contexts give them. */
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
