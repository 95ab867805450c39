// Finds and creates the volumes of Docker workspaces. Each restore fills volumes of the next generation, and then creates one more volume,
// the mark. Without a mark, the oldest existing generation is current; with a mark, the newest generation is. So a single call switches all
// volumes atomically, even if the engine or the server is killed.
import type { Engine } from "./engine.ts";

/**
 * The label of all containers, volumes and networks that are created for a workspace. The server treats everything with this label as part
 * of the workspace.
 */
export const WORKSPACE_LABEL = "slipway.workspace_id";
/** The label with the snapshot to which a volume or a helper belongs. */
export const SNAPSHOT_LABEL = "slipway.snapshot_id";
/** The label with the workspace of a snapshot. */
export const SNAPSHOT_OF_LABEL = "slipway.snapshot_of";
/**
 * The label with the workspace of which a helper container mounts the volumes. A helper remains after a copy only if the server or the
 * engine was killed.
 */
export const HELPER_LABEL = "slipway.helper_of";
/** The label with the template's name of a volume. A volume that a start has created does not have it. */
const VOLUME_LABEL = "slipway.volume";
const GENERATION_LABEL = "slipway.generation";
/** The label of a restore's mark. */
const MARK_LABEL = "slipway.restored";

type FoundVolume = { readonly Name: string; readonly Labels?: Readonly<Record<string, string>> | null };

/** A volume of the engine, with the template's name for it. */
export type Volume = { readonly volume: string; readonly name: string; readonly generation: number };

/** Returns the same name in each build, so that an interrupted build can be repeated. */
export const getVolumeName = (workspace_id: string, volume: string): string => `slipway-${workspace_id}-${volume}`;

const toVolumeName = (workspace_id: string, volume: string, generation: number): string =>
  `slipway-r${generation}-${workspace_id}-${volume}`;

/** Returns name and labels of the next generation of a volume. */
export const toNextVolume = (
  workspace_id: string,
  volume: string,
  current: Volume | undefined,
): { readonly name: string; readonly labels: Readonly<Record<string, string>> } => {
  const generation = (current?.generation ?? 0) + 1;
  return {
    name: toVolumeName(workspace_id, volume, generation),
    labels: { [WORKSPACE_LABEL]: workspace_id, [VOLUME_LABEL]: volume, [GENERATION_LABEL]: String(generation) },
  };
};

/** Returns name and labels of the mark that makes the newest generation of all volumes current. */
export const toRestoreMark = (workspace_id: string) => ({
  name: `slipway-restored-${workspace_id}`,
  labels: { [WORKSPACE_LABEL]: workspace_id, [MARK_LABEL]: "1" },
});

/** Returns name and labels of a copy of a volume. */
export const toCopyVolume = (workspace_id: string, snapshot_id: string, volume: string) => ({
  name: `slipway-snapshot-${snapshot_id}-${volume}`,
  labels: { [SNAPSHOT_LABEL]: snapshot_id, [SNAPSHOT_OF_LABEL]: workspace_id, [VOLUME_LABEL]: volume },
});

type Volumes = {
  readonly current: ReadonlyMap<string, Volume>;
  /** Volumes of an unfinished restore, or volumes that a finished one has replaced. */
  readonly outdated: readonly Volume[];
  readonly isMarked: boolean;
};

/** Returns the current volumes of a workspace, and the outdated ones. */
export const listVolumes = async (engine: Engine, workspace_id: string, signal?: AbortSignal): Promise<Volumes> => {
  const current = new Map<string, Volume>();
  const outdated: Volume[] = [];
  const prefix = getVolumeName(workspace_id, "");
  const found = await findVolumes(engine, `${WORKSPACE_LABEL}=${workspace_id}`, signal);
  const isMarked = found.some(({ Labels }) => Labels?.[MARK_LABEL] !== undefined);
  const volumes = found.flatMap(({ Name, Labels }) => {
    const volume = Labels?.[VOLUME_LABEL] ?? (Name.startsWith(prefix) ? Name.slice(prefix.length) : undefined);
    return volume === undefined ? [] : [{ volume, name: Name, generation: Number(Labels?.[GENERATION_LABEL] ?? 0) }];
  });
  volumes.sort((a, b) => (isMarked ? b.generation - a.generation : a.generation - b.generation));
  for (const found of volumes) {
    if (current.has(found.volume)) outdated.push(found);
    else current.set(found.volume, found);
  }
  return { current, outdated, isMarked };
};

/**
 * Cleans up after restores: removes helpers, outdated volumes, and then the mark. Must not be called while a copy of the workspace is in
 * progress.
 */
export const settleVolumes = async (engine: Engine, workspace_id: string, signal?: AbortSignal): Promise<void> => {
  await removeHelpers(engine, `${HELPER_LABEL}=${workspace_id}`, signal);
  const { outdated, isMarked } = await listVolumes(engine, workspace_id, signal);
  for (const { name } of outdated) await removeVolume(engine, name, signal);
  if (isMarked) await removeVolume(engine, toRestoreMark(workspace_id).name, signal);
};

/** Removes the containers with this label. */
export const removeHelpers = async (engine: Engine, label: string, signal?: AbortSignal): Promise<void> => {
  for (const { Id } of await findContainers(engine, [label], [], signal)) await removeHelper(engine, Id);
};

/** Removes a container. Succeeds if it does not exist. */
export const removeHelper = async (engine: Engine, id: string): Promise<void> => {
  await engine.json("remove a helper", "DELETE", `/containers/${id}`, {
    query: { force: "true" },
    expectedStatuses: [404, 409],
  });
};

export type FoundContainer = {
  readonly Id: string;
  readonly Names?: readonly string[];
  readonly Labels?: Readonly<Record<string, string>>;
};

/** The beginning of the names of a workspace's containers. */
export const getContainerPrefix = (workspace_id: string): string => `slipway-${workspace_id}-`;

/**
 * Returns the containers of a workspace. Checks their names too, because a build can set any label on the containers of its steps.
 * `labels`: additional labels that the containers must have.
 */
export const findWorkspaceContainers = async (
  engine: Engine,
  workspace_id: string,
  {
    labels = [],
    status = [],
    signal,
  }: { readonly labels?: readonly string[]; readonly status?: readonly string[]; readonly signal?: AbortSignal } = {},
): Promise<readonly FoundContainer[]> => {
  const found = await findContainers(engine, [`${WORKSPACE_LABEL}=${workspace_id}`, ...labels], status, signal);
  const prefix = `/${getContainerPrefix(workspace_id)}`;
  return found.filter(({ Names = [] }) => Names.some((name) => name.startsWith(prefix)));
};

/** Returns the containers with these labels and one of these states, or in any state if none is given. */
const findContainers = async (
  engine: Engine,
  label: readonly string[],
  status: readonly string[],
  signal?: AbortSignal,
): Promise<readonly FoundContainer[]> => {
  const filters = JSON.stringify({ label, ...(status.length > 0 ? { status } : {}) });
  const query = { all: "true", filters };
  return (await engine.json<FoundContainer[]>("list containers", "GET", "/containers/json", { query, signal })) ?? [];
};

/** Returns the copies that make up a snapshot, by volume name. */
export const listCopies = async (
  engine: Engine,
  snapshot_id: string,
  signal?: AbortSignal,
): Promise<readonly Volume[]> =>
  (await findVolumes(engine, `${SNAPSHOT_LABEL}=${snapshot_id}`, signal)).flatMap(({ Name, Labels }) => {
    const volume = Labels?.[VOLUME_LABEL];
    return volume === undefined ? [] : [{ volume, name: Name, generation: 0 }];
  });

export const findVolumes = async (
  engine: Engine,
  label: string,
  signal?: AbortSignal,
): Promise<readonly FoundVolume[]> => {
  const query = { filters: JSON.stringify({ label: [label] }) };
  type VolumeList = { Volumes?: FoundVolume[] | null };
  return (await engine.json<VolumeList>("list volumes", "GET", "/volumes", { query, signal }))?.Volumes ?? [];
};

export const createVolume = async (
  engine: Engine,
  { name, labels }: { readonly name: string; readonly labels: Readonly<Record<string, string>> },
  signal?: AbortSignal,
): Promise<void> => {
  await engine.json("create a volume", "POST", "/volumes/create", { body: { Name: name, Labels: labels }, signal });
};

/** Removes a volume. Succeeds if it does not exist. */
export const removeVolume = async (engine: Engine, name: string, signal?: AbortSignal): Promise<void> => {
  await engine.json("remove a volume", "DELETE", `/volumes/${name}`, { signal, expectedStatuses: [404] });
};
