// The volumes of a Docker workspace over restores: each restore fills volumes of the next generation. Until it creates one more volume, its mark,
// the oldest generation that exists counts; with the mark the newest does. So all volumes change over in one call, even if the engine or the
// server is killed.
import type { Engine } from "./engine.ts";

/** Everything we make carries it; what carries it for a workspace is that workspace's. */
export const WORKSPACE_LABEL = "slipway.workspace_id";
/** The snapshot that a volume or a helper belongs to. */
export const SNAPSHOT_LABEL = "slipway.snapshot_id";
/** The workspace whose files a snapshot has. */
export const SNAPSHOT_OF_LABEL = "slipway.snapshot_of";
/** The workspace whose own volumes a helper container mounts. No helper outlives the copy that it was made for, unless something was killed. */
export const HELPER_LABEL = "slipway.helper_of";
/** The name that the template gives a volume; absent on those that the first start has made. */
const VOLUME_LABEL = "slipway.volume";
const GENERATION_LABEL = "slipway.generation";
/** On the mark of a restore. */
const MARK_LABEL = "slipway.restored";

type Found = { readonly Name: string; readonly Labels?: Readonly<Record<string, string>> | null };

/** A volume of the engine, under the name that the template gives it. */
export type Volume = { readonly volume: string; readonly name: string; readonly generation: number };

/** The name says whose it is and is the same each time, so that a build can be repeated. */
export const volumeName = (workspace_id: string, volume: string): string => `slipway-${workspace_id}-${volume}`;

const nextName = (workspace_id: string, volume: string, generation: number): string =>
  `slipway-r${generation}-${workspace_id}-${volume}`;

/** What the next generation of a volume is called and labelled. */
export const nextVolume = (
  workspace_id: string,
  volume: string,
  current: Volume | undefined,
): { readonly name: string; readonly labels: Readonly<Record<string, string>> } => {
  const generation = (current?.generation ?? 0) + 1;
  return {
    name: nextName(workspace_id, volume, generation),
    labels: { [WORKSPACE_LABEL]: workspace_id, [VOLUME_LABEL]: volume, [GENERATION_LABEL]: String(generation) },
  };
};

/** What the mark is called and labelled that makes the newest generation of all volumes count. */
export const restoreMark = (workspace_id: string) => ({
  name: `slipway-restored-${workspace_id}`,
  labels: { [WORKSPACE_LABEL]: workspace_id, [MARK_LABEL]: "1" },
});

/** What a copy of a volume is called and labelled. */
export const nameCopy = (workspace_id: string, snapshot_id: string, volume: string) => ({
  name: `slipway-snapshot-${snapshot_id}-${volume}`,
  labels: { [SNAPSHOT_LABEL]: snapshot_id, [SNAPSHOT_OF_LABEL]: workspace_id, [VOLUME_LABEL]: volume },
});

type Volumes = {
  readonly current: ReadonlyMap<string, Volume>;
  /** Of a restore that has not changed over, or from before one that has. */
  readonly outdated: readonly Volume[];
  readonly isMarked: boolean;
};

/** The volumes of a workspace, each in the generation that counts, and the others. */
export const listVolumes = async (engine: Engine, workspace_id: string, signal?: AbortSignal): Promise<Volumes> => {
  const current = new Map<string, Volume>();
  const outdated: Volume[] = [];
  const prefix = volumeName(workspace_id, "");
  const found = await findVolumes(engine, `${WORKSPACE_LABEL}=${workspace_id}`, signal);
  const isMarked = found.some(({ Labels }) => Labels?.[MARK_LABEL] !== undefined);
  const all = found.flatMap(({ Name, Labels }) => {
    const volume = Labels?.[VOLUME_LABEL] ?? (Name.startsWith(prefix) ? Name.slice(prefix.length) : undefined);
    return volume === undefined ? [] : [{ volume, name: Name, generation: Number(Labels?.[GENERATION_LABEL] ?? 0) }];
  });
  all.sort((a, b) => (isMarked ? b.generation - a.generation : a.generation - b.generation));
  for (const one of all) {
    if (current.has(one.volume)) outdated.push(one);
    else current.set(one.volume, one);
  }
  return { current, outdated, isMarked };
};

/** Removes what restores have left: helpers, the volumes that do not count, and then the mark. No copy of the workspace may be under way. */
export const settleVolumes = async (engine: Engine, workspace_id: string, signal?: AbortSignal): Promise<void> => {
  await removeHelpers(engine, `${HELPER_LABEL}=${workspace_id}`, signal);
  const { outdated, isMarked } = await listVolumes(engine, workspace_id, signal);
  for (const { name } of outdated) await removeVolume(engine, name, signal);
  if (isMarked) await removeVolume(engine, restoreMark(workspace_id).name, signal);
};

/** Removes the containers with this label. */
export const removeHelpers = async (engine: Engine, label: string, signal?: AbortSignal): Promise<void> => {
  for (const { Id } of await findContainers(engine, label, [], signal)) await removeHelper(engine, Id);
};

/** Removes one container; no error when it is not there. */
export const removeHelper = async (engine: Engine, id: string): Promise<void> => {
  await engine.json("remove a helper", "DELETE", `/containers/${id}`, { query: { force: "true" }, fine: [404, 409] });
};

type FoundContainer = { readonly Id: string };

/** The containers with this label, in any of these states; in all without one. */
export const findContainers = async (
  engine: Engine,
  label: string,
  status: readonly string[],
  signal?: AbortSignal,
): Promise<readonly FoundContainer[]> => {
  const filters = JSON.stringify({ label: [label], ...(status.length > 0 ? { status } : {}) });
  const query = { all: "true", filters };
  return (await engine.json<FoundContainer[]>("list containers", "GET", "/containers/json", { query, signal })) ?? [];
};

/** The copies that a snapshot consists of, by the name of the volume they are of. */
export const listCopies = async (
  engine: Engine,
  snapshot_id: string,
  signal?: AbortSignal,
): Promise<readonly Volume[]> =>
  (await findVolumes(engine, `${SNAPSHOT_LABEL}=${snapshot_id}`, signal)).flatMap(({ Name, Labels }) => {
    const volume = Labels?.[VOLUME_LABEL];
    return volume === undefined ? [] : [{ volume, name: Name, generation: 0 }];
  });

export const findVolumes = async (engine: Engine, label: string, signal?: AbortSignal): Promise<readonly Found[]> => {
  const query = { filters: JSON.stringify({ label: [label] }) };
  type Answer = { Volumes?: Found[] | null };
  return (await engine.json<Answer>("list volumes", "GET", "/volumes", { query, signal }))?.Volumes ?? [];
};

export const createVolume = async (
  engine: Engine,
  { name, labels }: { readonly name: string; readonly labels: Readonly<Record<string, string>> },
  signal?: AbortSignal,
): Promise<void> => {
  await engine.json("create a volume", "POST", "/volumes/create", { body: { Name: name, Labels: labels }, signal });
};

/** No error when it is not there. */
export const removeVolume = async (engine: Engine, name: string, signal?: AbortSignal): Promise<void> => {
  await engine.json("remove a volume", "DELETE", `/volumes/${name}`, { signal, fine: [404] });
};
