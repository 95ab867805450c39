// The volumes of a Docker workspace over restores: each restore fills a volume of the next generation, and the one before is removed once that
// is whole. The oldest generation that exists is the one that counts, so removing a volume is all it takes to change over.
import type { Engine } from "./engine.ts";

/** Everything we make carries it; what carries it for a workspace is that workspace's. */
export const WORKSPACE_LABEL = "slipway.workspace_id";
/** The snapshot that a volume or a helper belongs to. */
export const SNAPSHOT_LABEL = "slipway.snapshot_id";
/** The workspace whose files a snapshot has. */
export const SNAPSHOT_OF_LABEL = "slipway.snapshot_of";
/** The name that the template gives a volume; absent on those that the first start has made. */
const VOLUME_LABEL = "slipway.volume";
const GENERATION_LABEL = "slipway.generation";

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

/** What a copy of a volume is called and labelled. */
export const nameCopy = (workspace_id: string, snapshot_id: string, volume: string) => ({
  name: `slipway-snapshot-${snapshot_id}-${volume}`,
  labels: { [SNAPSHOT_LABEL]: snapshot_id, [SNAPSHOT_OF_LABEL]: workspace_id, [VOLUME_LABEL]: volume },
});

/** The volumes of a workspace, each in the generation that counts, and those that a restore has not finished. */
export const listVolumes = async (
  engine: Engine,
  workspace_id: string,
  signal?: AbortSignal,
): Promise<{ readonly current: ReadonlyMap<string, Volume>; readonly unfinished: readonly Volume[] }> => {
  const current = new Map<string, Volume>();
  const unfinished: Volume[] = [];
  const prefix = volumeName(workspace_id, "");
  const all = (await findVolumes(engine, `${WORKSPACE_LABEL}=${workspace_id}`, signal)).flatMap(({ Name, Labels }) => {
    const volume = Labels?.[VOLUME_LABEL] ?? (Name.startsWith(prefix) ? Name.slice(prefix.length) : undefined);
    return volume === undefined ? [] : [{ volume, name: Name, generation: Number(Labels?.[GENERATION_LABEL] ?? 0) }];
  });
  for (const one of all.sort((a, b) => a.generation - b.generation)) {
    if (current.has(one.volume)) unfinished.push(one);
    else current.set(one.volume, one);
  }
  return { current, unfinished };
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
