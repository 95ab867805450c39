// Where actors, agents, jobs and the private network live: on this server, or on one of several nodes (src/cluster/location.ts). Features are
// given a `Location` and know no other node.
import { Directory, type OpenDirectory } from "#actors/runtime/directory.ts";
import type { JobQueue } from "#actors/runtime/job-queue.ts";
import type { RemoteJobs } from "#actors/runtime/remote-jobs.ts";
import type { Imports, TemplateVersionActor } from "#actors/template-version/actor.ts";
import type { DryRunActor, DryRuns } from "#actors/template-version/dry-run-actor.ts";
import type { WorkspaceActor } from "#actors/workspace/actor.ts";
import type { WorkedBuild } from "#actors/workspace/build-runner.ts";
import type { Builds } from "#actors/workspace/effects.ts";
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { type Shards, toShard } from "#base/shards.ts";
import type { Report } from "#src/provisioners/provisioner.ts";
import type { AgentDialer } from "#src/wire/index.ts";
import type { Network } from "./tailnet/network.ts";

/** How builds, imports and dry runs are run here, and who owns them. */
export type JobWork = {
  readonly builds: Builds;
  readonly imports: Imports;
  readonly runs: DryRuns;
  readonly workspaces: Directory<WorkspaceActor>;
  readonly versions: Directory<TemplateVersionActor>;
  readonly dryRuns: Directory<DryRunActor>;
};

export type JobNeeds = { readonly queue: () => JobQueue; readonly work: () => JobWork };

/** Shuts down the agents of a workspace in order, on this node. */
export type ShutDownAgents = (workspace_id: string, report: Report, signal: AbortSignal) => Promise<void>;
/** Like `ShutDownAgents`, on the node that owns the workspace; its reports go to the build's log. */
export type ShutDownOfBuild = (build: WorkedBuild, report: Report, signal: AbortSignal) => Promise<void>;

export interface Location {
  /** Returns whether this node works on the rows with this `part`; on a single server, on all. */
  readonly isHere: (part: number) => boolean;
  /** Returns a count that increases before rows arrive that another node may have changed, so that caches of them become invalid. */
  readonly countArrivals: () => number | undefined;
  /** Opens the directory of a kind of actors, whichever nodes they are on. */
  readonly openDirectory: OpenDirectory;
  /** Returns a dialer for agents, whichever nodes their tunnels end at. `local` dials those of this node. */
  openDialer(local: AgentDialer): AgentDialer;
  /** Connects this node's relay and coordinator with those of the other nodes. */
  joinNetwork(network: Network): void;
  /** Returns what connects this node's job queue with those of the other nodes; undefined if none exist. */
  openJobs(needs: JobNeeds): RemoteJobs | undefined;
  /** Returns a function that shuts down the agents of a build's workspace on its node. `shutDown` does it on this one. */
  shutDownOnOwner(workspaces: () => Directory<WorkspaceActor>, shutDown: ShutDownAgents): ShutDownOfBuild;
  /** Offers `run` to the other nodes, and returns a function that runs it on all of them. Slow or failing nodes are left out. */
  share(service: string, run: () => Promise<unknown>): () => Promise<unknown[]>;
  /** Offers `run` to the other nodes, and returns a function that runs it on the first node; undefined if this node is the first. */
  runOnFirst<Args>(service: string, run: (args: Args) => Promise<void>): (args: Args) => Promise<void> | undefined;
}

/** Returns a new ID for something that is created on this node. */
export const createLocalId = ({ isHere }: Pick<Location, "isHere">): string => {
  let id = uuid();
  while (!isHere(toShard(id))) id = uuid();
  return id;
};

type SingleDeps = { readonly clock: Clock; readonly shards: Shards; readonly copy: (<T>(message: T) => T) | undefined };

/** Returns the location of a server without other nodes. */
export const createSingleLocation = ({ clock, shards, copy }: SingleDeps): Location => ({
  isHere: (part) => shards.has(part),
  countArrivals: () => shards.arrivals,
  openDirectory: (_, create, { most } = {}) => new Directory(create, clock, { copy, most }),
  openDialer: (local) => local,
  joinNetwork: () => {},
  openJobs: () => undefined,
  shutDownOnOwner:
    (_, shutDown) =>
    ({ workspace_id }, report, signal) =>
      shutDown(workspace_id, report, signal),
  share: () => async () => [],
  runOnFirst: () => () => undefined,
});
