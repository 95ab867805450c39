// Takes and restores snapshots of Docker workspaces by copying each volume to another volume of the same engine. The server reads the files
// as a tar archive from one helper container and writes them to another. The helpers are never started, so they need no program in an
// image. This also works with a remote engine.
import type { Clock } from "#base/clock.ts";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import { createEmptyTar } from "#base/program-tar.ts";
import type { SnapshotMethod } from "#schema/workspaces/snapshot.ts";
import type { CaptureResult, Homes, PackedFiles, SnapshotRef } from "../homes.ts";
import { ProvisionError } from "../provisioner.ts";
import { Engine } from "./engine.ts";
import {
  createVolume,
  findWorkspaceContainers,
  HELPER_LABEL,
  listCopies,
  listVolumes,
  removeHelper,
  removeHelpers,
  removeVolume,
  SNAPSHOT_LABEL,
  SNAPSHOT_OF_LABEL,
  settleVolumes,
  toCopyVolume,
  toNextVolume,
  toRestoreMark,
  WORKSPACE_LABEL,
} from "./volumes.ts";

/** An empty image, because a container needs an image to mount volumes. */
const HELPER_IMAGE = "slipway-files";
const HELPER_TAG = "1";

type Labels = Readonly<Record<string, string>>;
type VolumePair = { readonly from: string; readonly to: string };

export class DockerHomes implements Homes {
  readonly #host: string | undefined;
  readonly #clock: Clock;

  /** `host` is the setting `docker_host`. */
  constructor(host: string | undefined, clock: Clock) {
    this.#host = host;
    this.#clock = clock;
  }

  async method(): Promise<SnapshotMethod> {
    return "volume";
  }

  async capture(ref: SnapshotRef, signal: AbortSignal): Promise<CaptureResult> {
    const { workspace_id, snapshot_id } = ref;
    const engine = await this.#connect(signal);
    await discard(engine, ref);
    const { current } = await listVolumes(engine, workspace_id, signal);
    if (current.size === 0) {
      throw new ProvisionError("The workspace has no volumes. Only files in volumes are kept while it is stopped.");
    }
    try {
      const pairs: VolumePair[] = [];
      for (const { volume, name } of current.values()) {
        const copy = toCopyVolume(workspace_id, snapshot_id, volume);
        await createVolume(engine, copy, signal);
        pairs.push({ from: name, to: copy.name });
      }
      await pauseAll(engine, workspace_id, signal);
      failpoint("snapshot_frozen");
      const labels = { ...toSnapshotLabels(ref), [HELPER_LABEL]: workspace_id };
      const bytes = await copyVolumes(engine, labels, pairs, signal);
      failpoint("snapshot_copied");
      await unpauseContainers(engine, workspace_id);
      failpoint("snapshot_made");
      return { method: "volume", bytes };
    } catch (error) {
      await discard(engine, ref).catch(() => {});
      throw error;
    }
  }

  /** Returns the size of a workspace's volumes and snapshots, as reported by the engine. */
  async measure(workspace_id: string, signal: AbortSignal): Promise<number> {
    const engine = await this.#connect(signal);
    type DiskUsage = {
      Volumes?: { Labels?: Record<string, string> | null; UsageData?: { Size: number } | null }[] | null;
    };
    const usage = await engine.json<DiskUsage>("measure volumes", "GET", "/system/df", { signal });
    return (usage?.Volumes ?? [])
      .filter(({ Labels }) => [Labels?.[WORKSPACE_LABEL], Labels?.[SNAPSHOT_OF_LABEL]].includes(workspace_id))
      .reduce((sum, { UsageData }) => sum + Math.max(0, UsageData?.Size ?? 0), 0);
  }

  async pack<T>(ref: SnapshotRef, signal: AbortSignal, use: (packed: PackedFiles) => Promise<T>): Promise<T> {
    const engine = await this.#connect(signal);
    const copies = await listCopies(engine, ref.snapshot_id, signal);
    if (copies.length === 0) throw new ProvisionError("The snapshot's files are missing.");
    const volumes = copies.map(({ volume }) => volume).sort();
    const mounts = copies.map(({ volume, name }) => ({ Source: name, Target: `/files/${volume}`, ReadOnly: true }));
    return withHelper(engine, toSnapshotLabels(ref), mounts, signal, (helper) =>
      engine.readArchive(helper, "/files/.", signal, (stream) => use({ volumes, stream })),
    );
  }

  async unpack(ref: SnapshotRef, { volumes, stream }: PackedFiles, signal: AbortSignal): Promise<CaptureResult> {
    const { workspace_id, snapshot_id } = ref;
    const engine = await this.#connect(signal);
    await discard(engine, ref);
    try {
      const mounts: Mount[] = [];
      for (const volume of volumes) {
        const copy = toCopyVolume(workspace_id, snapshot_id, volume);
        await createVolume(engine, copy, signal);
        mounts.push({ Source: copy.name, Target: `/files/${volume}` });
      }
      const bytes = await withHelper(engine, toSnapshotLabels(ref), mounts, signal, (helper) =>
        engine.writeArchive(helper, "/files", stream, signal),
      );
      failpoint("home_backup_fetched");
      return { method: "volume", bytes };
    } catch (error) {
      await discard(engine, ref).catch(() => {});
      throw error;
    }
  }

  async discard(ref: SnapshotRef): Promise<void> {
    await discard(await this.#connect(), ref);
  }

  /**
   * Replaces the files of a workspace by the files of a snapshot. The workspace must have no containers. On failure, it keeps its files.
   */
  async restore(workspace_id: string, from: SnapshotRef, signal: AbortSignal): Promise<void> {
    const engine = await this.#connect(signal);
    const copies = await listCopies(engine, from.snapshot_id, signal);
    if (copies.length === 0) throw new ProvisionError("The snapshot's files are missing.");
    await settleVolumes(engine, workspace_id, signal);
    const { current } = await listVolumes(engine, workspace_id, signal);
    const pairs: VolumePair[] = [];
    try {
      for (const { volume, name } of copies) {
        const next = toNextVolume(workspace_id, volume, current.get(volume));
        await createVolume(engine, next, signal);
        pairs.push({ from: name, to: next.name });
      }
      await copyVolumes(engine, { [HELPER_LABEL]: workspace_id }, pairs, signal);
      signal.throwIfAborted();
    } catch (error) {
      for (const { to } of pairs) await removeVolume(engine, to).catch(() => {});
      throw error;
    }
    // The mark switches all volumes atomically. Even if the engine is killed during this call, the current volumes are a complete set.
    await createVolume(engine, toRestoreMark(workspace_id));
    failpoint("home_replaced");
    await settleVolumes(engine, workspace_id).catch((error) => {
      log("docker").warn("replaced volumes of {workspace_id} are kept until its next build: {error}", {
        workspace_id,
        error,
      });
    });
  }

  async #connect(signal?: AbortSignal): Promise<Engine> {
    const engine = new Engine(this.#host, this.#clock);
    await engine.connect(signal);
    return engine;
  }
}

/**
 * Copies the files of volumes, including owner and mode of the top folders, to other volumes. Returns the number of bytes. Uses two helper
 * containers, because the engine locks a container while reading an archive from it: writing to the same container would deadlock.
 */
const copyVolumes = async (
  engine: Engine,
  labels: Labels,
  pairs: readonly VolumePair[],
  signal: AbortSignal,
): Promise<number> => {
  const sources = pairs.map(({ from }, index) => ({ Source: from, Target: `/files/${index}`, ReadOnly: true }));
  const targets = pairs.map(({ to }, index) => ({ Source: to, Target: `/files/${index}` }));
  return withHelper(engine, labels, sources, signal, (reader) =>
    withHelper(engine, labels, targets, signal, (writer) =>
      engine.readArchive(reader, "/files/.", signal, (stream) => engine.writeArchive(writer, "/files", stream, signal)),
    ),
  );
};

const toSnapshotLabels = ({ workspace_id, snapshot_id }: SnapshotRef): Labels => ({
  [SNAPSHOT_LABEL]: snapshot_id,
  [SNAPSHOT_OF_LABEL]: workspace_id,
});

type Mount = { readonly Source: string; readonly Target: string; readonly ReadOnly?: boolean };

/** Passes the ID of a helper container with these volumes to `use`, and then removes the container. */
const withHelper = async <T>(
  engine: Engine,
  labels: Labels,
  mounts: readonly Mount[],
  signal: AbortSignal,
  use: (helper: string) => Promise<T>,
): Promise<T> => {
  await ensureHelperImage(engine, signal);
  const body = {
    Image: `${HELPER_IMAGE}:${HELPER_TAG}`,
    // The container is never started, but the engine requires a command.
    Cmd: ["none"],
    Labels: labels,
    HostConfig: { Mounts: mounts.map((mount) => Object.assign({ Type: "volume" }, mount)), NetworkMode: "none" },
  };
  const helper = await engine.json<{ Id: string }>("create a helper", "POST", "/containers/create", { body, signal });
  if (!helper?.Id) throw new ProvisionError("The Docker Engine created a container without id.");
  let result: T;
  try {
    result = await use(helper.Id);
  } catch (error) {
    // If the engine was killed, the removal fails too, but the first error is more useful.
    await removeHelper(engine, helper.Id).catch(() => {});
    throw error;
  }
  await removeHelper(engine, helper.Id);
  return result;
};

const ensureHelperImage = async (engine: Engine, signal: AbortSignal): Promise<void> => {
  const image = `${HELPER_IMAGE}:${HELPER_TAG}`;
  if (await engine.json("find an image", "GET", `/images/${image}/json`, { signal, expectedStatuses: [404] })) return;
  const call = { query: { fromSrc: "-", repo: HELPER_IMAGE, tag: HELPER_TAG }, tar: createEmptyTar(), signal };
  await engine.lines("make an empty image", "POST", "/images/create", call, () => {});
};

const pauseAll = async (engine: Engine, workspace_id: string, signal: AbortSignal): Promise<void> => {
  const running = await findWorkspaceContainers(engine, workspace_id, { status: ["running"], signal });
  // 409: the container has ended or is already paused.
  for (const { Id } of running) {
    await engine.json("pause a container", "POST", `/containers/${Id}/pause`, { signal, expectedStatuses: [404, 409] });
  }
};

const unpauseContainers = async (engine: Engine, workspace_id: string): Promise<void> => {
  for (const { Id } of await findWorkspaceContainers(engine, workspace_id, { status: ["paused"] })) {
    await engine.json("resume a container", "POST", `/containers/${Id}/unpause`, { expectedStatuses: [404, 409] });
  }
};

const discard = async (engine: Engine, { workspace_id, snapshot_id }: SnapshotRef): Promise<void> => {
  await unpauseContainers(engine, workspace_id);
  await removeHelpers(engine, `${SNAPSHOT_LABEL}=${snapshot_id}`);
  for (const { name } of await listCopies(engine, snapshot_id)) await removeVolume(engine, name);
};
