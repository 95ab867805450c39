// Runs workspaces as containers of a Docker Engine. All containers, volumes and networks have the workspace's label and the same name in
// each build, so that a build can be repeated after a crash and can find leftovers without a stored state (rules PV-1 to PV-8).
import type { Clock } from "#base/clock.ts";
import { uuid } from "#base/ids.ts";
import { log } from "#base/log.ts";
import { createTar, PROGRAM_PATH } from "#base/program-tar.ts";
import { pause } from "#base/retry.ts";
import { parsePlan, type RepositoryPlan } from "#schema/templates/repository.ts";
import type { SnapshotRef } from "../homes.ts";
import {
  type ContainerKill,
  ProvisionError,
  type Provisioner,
  type ProvisionRequest,
  type ProvisionResult,
  type Report,
} from "../provisioner.ts";
import { isOfRepository } from "../repository/apply-plan.ts";
import { reportRepositories } from "../repository/report.ts";
import type { RepositorySources } from "../repository/sources.ts";
import {
  buildLabels,
  type ContainerSpec,
  GRACE_LABEL,
  listContainerSpecs,
  STOP_GRACE_S,
  toContainerBody,
  toContainerName,
} from "./container.ts";
import { Engine, EngineError } from "./engine.ts";
import { DockerHomes } from "./homes.ts";
import { checkImageName } from "./image-name.ts";
import { DockerImages } from "./images.ts";
import { followMemoryKills } from "./memory-kills.ts";
import { chooseNetwork, ensureNetwork, removeNetworks } from "./network.ts";
import { checkUserFiles, chownFolders } from "./owner.ts";
import { findProgram, type Program } from "./program.ts";
import { ensureImage, findImage } from "./pull.ts";
import { ImageRegistry, type RegistryOptions, type RegistryProblem } from "./registry.ts";
import { type BuiltImage, ensureRepositoryImage, needsBuild, toGuardedPull } from "./repository-image.ts";
import {
  createVolume,
  type FoundContainer,
  findVolumes,
  findWorkspaceContainers,
  getVolumeName,
  listVolumes,
  removeHelpers,
  removeVolume,
  SNAPSHOT_OF_LABEL,
  settleVolumes,
  WORKSPACE_LABEL,
} from "./volumes.ts";

export type DockerOptions = {
  /** The setting `docker_host`; defaults to the usual socket. */
  readonly host?: string | undefined;
  readonly clock: Clock;
  /** Returns the server's URL for containers. */
  readonly accessUrl: () => URL;
  /** The setting `agent_binary`. */
  readonly program?: string | undefined;
  /** The files and features from which repository images are built. A worker has none. */
  readonly repositories?: RepositorySources | undefined;
  /** Maximum bytes of all repository images. */
  readonly repositoryImages?: number | undefined;
  /** The registry that shares repository images with other engines. */
  readonly registry?: RegistryOptions | undefined;
  /** Why containers cannot reach the server. If set, workspaces do not start, because their agents would never connect. */
  readonly unreachableReason?: string | undefined;
};

/** One call of `DockerProvisioner.run`. */
type Work = {
  readonly engine: Engine;
  readonly request: ProvisionRequest;
  readonly report: Report;
  readonly signal: AbortSignal;
  readonly stage: string;
  /** The ID of this run, which labels the containers that it creates. Another worker may run the same build. */
  readonly run: string;
};

const STAGES = { start: "Starting", stop: "Stopping", delete: "Deleting" } as const;
const UPLOAD_TIMEOUT_MS = 10 * 60_000;
/** How long to wait for the engine to respond to the availability check. */
const READY_TIMEOUT_MS = 2_000;
/** Number of retries while a container of the same name is being removed. */
const MAX_NAME_RETRIES = 3;
const NAME_RETRY_MS = 500;

export class DockerProvisioner implements Provisioner {
  readonly name = "docker";
  readonly homes: DockerHomes;
  readonly images: DockerImages;
  readonly #options: DockerOptions;
  readonly #registry: ImageRegistry | undefined;
  readonly #stopped = new AbortController();

  constructor(options: DockerOptions) {
    this.#options = options;
    this.homes = new DockerHomes(options.host, options.clock);
    const { host, clock, registry, repositories: sources, repositoryImages: max_bytes = 0 } = options;
    this.#registry = registry && new ImageRegistry(registry, clock);
    this.images = new DockerImages({ host, clock, sources, registry: this.#registry, max_bytes });
  }

  async run(request: ProvisionRequest, report: Report, signal: AbortSignal): Promise<ProvisionResult> {
    const engine = new Engine(this.#options.host, this.#options.clock);
    const work: Work = { engine, request, report, signal, stage: STAGES[request.transition], run: uuid() };
    const { unreachableReason } = this.#options;
    if (request.transition === "start" && unreachableReason !== undefined) throw new ProvisionError(unreachableReason);
    await engine.connect(signal);
    const existing = await listContainers(work);
    if (request.claimed) return this.#handOver(work, existing);
    for (const container of existing)
      await this.#runStep(work, "stop", getName(container), () => stopAndRemove(work, container));
    await settleVolumes(engine, request.workspace.id, signal).catch((error) => {
      signal.throwIfAborted();
      report.log("warn", work.stage, `Former volumes stay until the next build: ${(error as Error).message}`);
    });
    if (request.transition === "delete" && !request.keeps_files) await this.#removeVolumes(work);
    await removeNetworks(engine, toLabelFilter(request.workspace.id), signal);
    if (request.keeps_files) {
      report.log("info", work.stage, "The workspace's volumes stay in the trash.");
      // The size is for information only, so an engine that cannot measure it does not fail the build.
      const kept_bytes = await this.homes.measure(request.workspace.id, signal).catch(() => undefined);
      return { state: null, ...(kept_bytes === undefined ? {} : { kept_bytes }) };
    }
    if (request.restore) await this.#restore(work, request.restore);
    if (request.transition !== "start") return { state: null };
    reportRepositories(request, report, work.stage);
    try {
      const specs = listContainerSpecs(request);
      const network = chooseNetwork(request, specs.length);
      if (specs.some(({ docker }) => !docker.network))
        await ensureNetwork(engine, network, buildLabels(request), signal);
      const containers: string[] = [];
      for (const spec of specs) containers.push(await this.#start(work, spec, network));
      return { state: JSON.stringify({ containers }) };
    } catch (error) {
      await this.#cleanUp(work);
      throw error;
    }
  }

  #restore(work: Work, from: SnapshotRef): Promise<void> {
    const { id, name } = work.request.workspace;
    work.report.log("info", work.stage, "Restoring the workspace's volumes from the snapshot.");
    return this.#runStep(work, "restore", name, () => this.homes.restore(id, from, work.signal));
  }

  /** Keeps the containers of a claimed workspace, because their daemons already have their tokens. Starts stopped containers. */
  async #handOver(
    { engine, request, report, signal, stage }: Work,
    containers: readonly FoundContainer[],
  ): Promise<ProvisionResult> {
    if (containers.length === 0) throw new ProvisionError("The prebuilt workspace no longer exists.");
    report.log("info", stage, "Giving the running workspace to its owner.");
    for (const { Id } of containers) {
      await engine.json("start the container", "POST", `/containers/${Id}/start`, { signal, expectedStatuses: [304] });
    }
    return { state: request.state };
  }

  /**
   * Returns why this provisioner cannot be used: the engine does not respond in time, there is no daemon program for containers, or
   * containers cannot reach the server. Returns undefined if there is no problem.
   */
  async findProblem(): Promise<string | undefined> {
    const deadline = new AbortController();
    const timeoutError = new Error("The Docker Engine takes too long to respond.");
    const timer = this.#options.clock.after(READY_TIMEOUT_MS, () => deadline.abort(timeoutError));
    try {
      await new Engine(this.#options.host, this.#options.clock).connect(deadline.signal);
      findProgram(this.#options.program);
      return this.#options.unreachableReason;
    } catch (error) {
      return (error as Error).message;
    } finally {
      timer.cancel();
    }
  }

  /** Returns why the image registry cannot be used; undefined if it works or none is configured. Rejects if the engine does not respond. */
  async checkRegistry(): Promise<RegistryProblem | undefined> {
    if (!this.#registry) return undefined;
    const engine = new Engine(this.#options.host, this.#options.clock);
    await engine.connect();
    return this.#registry.check(engine);
  }

  followKills(onKill: (kill: ContainerKill) => void): void {
    const { host, clock } = this.#options;
    void followMemoryKills({ host, clock, signal: this.#stopped.signal, onKill });
  }

  stop(): void {
    this.#stopped.abort(new Error("the server stops"));
    this.#registry?.stop();
  }

  /** Reports whether the images are present. Does not pull or create anything. */
  async plan(request: ProvisionRequest, report: Report, signal: AbortSignal): Promise<undefined> {
    const engine = new Engine(this.#options.host, this.#options.clock);
    const stage = "Planning";
    await engine.connect(signal);
    for (const { docker, resource } of listContainerSpecs(request)) {
      const { image: imageName, pull: policy = "missing" } = docker;
      checkImageName(imageName, this.#registry?.name);
      const image = await findImage({ engine, clock: this.#options.clock, report, stage, signal }, imageName);
      if (!image && policy === "never") {
        throw new ProvisionError(
          `The image ${imageName} does not exist on the Docker Engine, and its pull policy is never.`,
        );
      }
      if (image && resource.agents?.length) {
        checkArchitecture(findProgram(this.#options.program), image.architecture, imageName);
      }
      const availability = !image || policy === "always" ? "would be fetched" : "is there";
      report.log(
        "info",
        stage,
        `The container ${resource.name} would be created from ${imageName}, which ${availability}.`,
      );
    }
  }

  /** Prepares image, volumes, container and daemon, and starts the container. Returns the container's ID. */
  async #start(work: Work, spec: ContainerSpec, network: string): Promise<string> {
    const { engine, request, report, signal, stage } = work;
    const { docker, resource, agent } = spec;
    const runStep = <T>(action: string, run: () => Promise<T>): Promise<T> =>
      this.#runStep(work, action, resource.name, run);
    const program = agent ? findProgram(this.#options.program) : undefined;
    const plan = resource.agents?.flatMap(({ repository }) => (repository && parsePlan(repository)) || [])[0];
    const { image, architecture, user } = await runStep("image", () => this.#resolveImage(work, spec, plan));
    if (program) checkArchitecture(program, architecture, image);
    const { current } = await listVolumes(engine, request.workspace.id, signal);
    const volumeFor = (volume: string): string =>
      current.get(volume)?.name ?? getVolumeName(request.workspace.id, volume);
    for (const { name } of docker.volumes ?? []) {
      if (current.has(name)) continue;
      const volume = { name: volumeFor(name), labels: buildLabels(request) };
      await runStep("volume", () => createVolume(engine, volume, signal));
    }
    const access_url = this.#options.accessUrl().href;
    const settings = { access_url, run: work.run, network, user, volumeFor };
    const body = toContainerBody(request, { ...spec, docker: { ...docker, image } }, settings);
    report.log("info", stage, `Creating the container ${resource.name} from ${image}.`);
    const id = await runStep("create", () => this.#create(work, resource.name, body));
    await checkUserFiles(engine, { id, image, signal });
    if (plan) {
      const paths = (docker.volumes ?? []).filter(isOfRepository).map(({ path }) => path);
      await runStep("owner", () => chownFolders(engine, { id, user: docker.user || user, paths, signal }));
    }
    if (program) {
      report.log("info", stage, "Putting the workspace's daemon into the container.");
      await runStep("upload", () => uploadProgram(work, id, program));
    }
    await runStep("run", () =>
      engine.json("start the container", "POST", `/containers/${id}/start`, { signal, expectedStatuses: [304] }),
    );
    report.log("info", stage, `The container ${resource.name} is running.`);
    return id;
  }

  /** Returns the container's image: the image that its repository describes, or else the template's image. */
  async #resolveImage(work: Work, { docker }: ContainerSpec, plan: RepositoryPlan | undefined): Promise<BuiltImage> {
    const { engine, request, report, signal, stage } = work;
    const pull = { engine, clock: this.#options.clock, report, stage, signal };
    const sources = this.#options.repositories;
    const owner_id = request.no_user_data ? "" : request.owner.id;
    if (!plan || !needsBuild(plan)) {
      checkImageName(docker.image, this.#registry?.name);
      const guarded = toGuardedPull({ ...pull, sources, owner_id });
      return { image: docker.image, ...(await ensureImage(guarded, docker.image, docker.pull ?? "missing")) };
    }
    return ensureRepositoryImage({
      ...pull,
      plan,
      docker,
      sources,
      owner_id,
      max_bytes: this.#options.repositoryImages ?? 0,
      registry: this.#registry,
    });
  }

  async #create(work: Work, resource: string, body: Record<string, unknown>): Promise<string> {
    const { engine, request, signal } = work;
    const name = toContainerName(request, resource);
    for (let retriesLeft = MAX_NAME_RETRIES; ; retriesLeft--) {
      try {
        const call = { query: { name }, body, signal };
        const created = await engine.json<{ Id: string }>("create the container", "POST", "/containers/create", call);
        if (!created?.Id) throw new ProvisionError("The Docker Engine created a container without id.");
        return created.Id;
      } catch (error) {
        if (!(error instanceof EngineError) || error.status !== 409 || retriesLeft === 0) throw error;
        // A container of an interrupted build has this name, or a container of this name is still being removed.
        const holder = (await listContainers(work)).find((existing) => getName(existing) === name);
        if (holder) await stopAndRemove(work, holder);
        else if (retriesLeft < MAX_NAME_RETRIES) throw error;
        await pause(this.#options.clock, NAME_RETRY_MS);
      }
    }
  }

  /** Removes the containers and networks of a failed or canceled start. Volumes are kept. */
  async #cleanUp(work: Work): Promise<void> {
    const cleanupWork = { ...work, signal: new AbortController().signal };
    try {
      for (const container of await listContainers(cleanupWork, `slipway.run=${work.run}`))
        await forceRemove(cleanupWork, container.Id);
      await removeNetworks(cleanupWork.engine, toLabelFilter(work.request.workspace.id), cleanupWork.signal);
    } catch (error) {
      const { id } = work.request.workspace;
      log("docker").warn("containers of a failed start of workspace {id} are kept until the next build: {error}", {
        id,
        error,
      });
    }
  }

  async #removeVolumes(work: Work): Promise<void> {
    const { engine, request, signal } = work;
    const { id } = request.workspace;
    await removeHelpers(engine, `${SNAPSHOT_OF_LABEL}=${id}`, signal);
    const volumes = await findVolumes(engine, `${WORKSPACE_LABEL}=${id}`, signal);
    const copies = await findVolumes(engine, `${SNAPSHOT_OF_LABEL}=${id}`, signal);
    for (const { Name } of [...volumes, ...copies]) {
      await this.#runStep(work, "delete", Name, () => {
        work.report.log("info", work.stage, `Removing the volume ${Name}.`);
        return removeVolume(engine, Name, signal);
      });
    }
  }

  async #runStep<T>(work: Work, action: string, resource: string, run: () => Promise<T>): Promise<T> {
    const { clock } = this.#options;
    work.signal.throwIfAborted();
    const started_at = clock.now();
    const result = await run();
    work.report.timing({ action, resource, source: "docker", stage: "apply", started_at, ended_at: clock.now() });
    return result;
  }
}

const toLabelFilter = (id: string): string => JSON.stringify({ label: [`${WORKSPACE_LABEL}=${id}`] });

const listContainers = ({ engine, request, signal }: Work, ...labels: string[]): Promise<readonly FoundContainer[]> =>
  findWorkspaceContainers(engine, request.workspace.id, { labels, signal });

const getName = ({ Id, Names }: FoundContainer): string => Names?.[0]?.replace(/^\//, "") ?? Id.slice(0, 12);

/** Stops the container gracefully before removing it. Succeeds if it no longer exists. */
const stopAndRemove = async (work: Work, container: FoundContainer): Promise<void> => {
  const { engine, report, signal, stage } = work;
  const grace = Number(container.Labels?.[GRACE_LABEL] ?? STOP_GRACE_S);
  report.log("info", stage, `Stopping the container ${getName(container)}.`);
  await engine.json("stop the container", "POST", `/containers/${container.Id}/stop`, {
    query: { t: String(grace) },
    signal,
    expectedStatuses: [304, 404],
    timeout: (grace + 60) * 1000,
  });
  await forceRemove(work, container.Id);
};

const forceRemove = async ({ engine, signal }: Work, id: string): Promise<void> => {
  // 409: the container is already being removed.
  const call = { query: { force: "true", v: "true" }, signal, expectedStatuses: [404, 409] };
  await engine.json("remove the container", "DELETE", `/containers/${id}`, call);
};

const uploadProgram = async ({ engine, signal }: Work, id: string, program: Program): Promise<void> => {
  await engine.json("copy the workspace's daemon into the container", "PUT", `/containers/${id}/archive`, {
    query: { path: "/" },
    tar: createTar(program.file, PROGRAM_PATH),
    signal,
    timeout: UPLOAD_TIMEOUT_MS,
  });
};

const checkArchitecture = (program: Program, architecture: string, image: string): void => {
  if (architecture === "" || architecture === program.architecture) return;
  throw new ProvisionError(
    `The image ${image} is for ${architecture}, but the daemon program for workspaces is for ${program.architecture}. Set agent_binary to a program for ${architecture}.`,
  );
};
