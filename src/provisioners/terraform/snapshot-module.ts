// Takes snapshots of workspaces with disks that only their template can copy. Each snapshot applies the module in the template's folder
// `slipway-snapshot` with a folder and state of its own. Deleting the snapshot destroys what the module created (rules TF-51 to TF-53).
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { failpoint } from "#base/failpoint.ts";
import { log } from "#base/log.ts";
import type { Mask } from "#base/secrets/mask.ts";
import type { SnapshotRef } from "../homes.ts";
import { type ModuleWork, ProvisionError, type Report, type SnapshotModule } from "../provisioner.ts";
import type { Engine } from "./engine.ts";
import { isBare, pickNewerState, Session } from "./session.ts";
import { readSnapshotOutput, SNAPSHOT_FOLDER, SNAPSHOT_NAME } from "./snapshot-output.ts";
import { formatVariablesFile, isTemplateFile, parseDeclaredVariables } from "./variables.ts";

type Deps = {
  /** Resolves once no process of an earlier run is active in a folder. */
  readonly waitUntilEnded: (folder: string) => Promise<void>;
  readonly open: (session: Session, report: Report, signal: AbortSignal) => Promise<{ engine: Engine; mask: Mask }>;
};

const CREATE_STAGE = "Creating the snapshot";
const DELETE_STAGE = "Deleting the snapshot";

export class TerraformModule implements SnapshotModule {
  readonly #root: string;
  readonly #deps: Deps;
  /** Snapshots with an operation in progress. */
  readonly #busy = new Set<string>();

  constructor(root: string, deps: Deps) {
    this.#root = root;
    this.#deps = deps;
  }

  make(ref: SnapshotRef, work: ModuleWork, signal: AbortSignal): Promise<string> {
    return this.#runModule(ref, work, signal, async (engine, session) => {
      await engine.init(CREATE_STAGE);
      await engine.plan(CREATE_STAGE, {});
      await engine.apply(CREATE_STAGE, {});
      failpoint("module_applied");
      const state = await session.readState();
      if (state === undefined || readSnapshotOutput(state) === undefined) throw new ProvisionError(NO_OUTPUT_MESSAGE);
      return state;
    });
  }

  remove(ref: SnapshotRef, work: ModuleWork, signal: AbortSignal): Promise<void> {
    return this.#runModule(ref, work, signal, async (engine, _session, state) => {
      if (isBare(state)) return;
      await engine.init(DELETE_STAGE);
      await engine.plan(DELETE_STAGE, {}, true);
      await engine.apply(DELETE_STAGE, {});
    });
  }

  async releaseState(ref: SnapshotRef): Promise<void> {
    if (!this.#busy.has(ref.snapshot_id)) await this.#toSession(ref).remove();
  }

  async listRetained(): Promise<readonly { readonly snapshot_id: string; readonly state: string | undefined }[]> {
    const names = await readdir(this.#root).catch(() => []);
    const retained: { snapshot_id: string; state: string | undefined }[] = [];
    for (const snapshot_id of names) {
      if (this.#busy.has(snapshot_id)) continue;
      const session = this.#toSession({ snapshot_id });
      await this.#deps.waitUntilEnded(session.folder);
      const state = await session.readState().catch(() => undefined);
      retained.push({ snapshot_id, state: state ?? ((await session.isEmpty()) ? "" : undefined) });
    }
    return retained;
  }

  /** Runs the module. If it fails, throws a ProvisionError with the remaining state. */
  async #runModule<T>(
    ref: SnapshotRef,
    work: ModuleWork,
    signal: AbortSignal,
    use: (engine: Engine, session: Session, state: string | null) => Promise<T>,
  ): Promise<T> {
    const { snapshot_id } = ref;
    const session = this.#toSession(ref);
    this.#busy.add(snapshot_id);
    try {
      await this.#deps.waitUntilEnded(session.folder);
      const { engine, mask } = await this.#deps.open(session, toReport(snapshot_id), signal);
      const state = await unpackModule(session, ref, work, mask);
      return await use(engine, session, state);
    } catch (error) {
      throw addState(error, pickNewerState(work.state, await session.readState()));
    } finally {
      this.#busy.delete(snapshot_id);
    }
  }

  #toSession({ snapshot_id }: Pick<SnapshotRef, "snapshot_id">): Session {
    return new Session(join(this.#root, snapshot_id), SNAPSHOT_FOLDER);
  }
}

/** Unpacks the module and writes its values and state, in place of the files of an interrupted run. Returns the state. */
const unpackModule = async (
  session: Session,
  { workspace_id, snapshot_id }: SnapshotRef,
  { archive, declared, variables, source, state: stored }: ModuleWork,
  mask: Mask,
): Promise<string | null> => {
  await session.moveUnreadableState(stored);
  const state = pickNewerState(stored, await session.readState());
  mask.add(...declared.filter(({ sensitive }) => sensitive).map(({ name }) => variables[name]));
  await session.prepare(archive);
  if (state !== null) await session.writeState(state);
  const variableNames = parseDeclaredVariables(await readFiles(session.work)).map(({ name }) => name);
  const passedVariables = declared.filter(({ name }) => variableNames.includes(name));
  const typed = passedVariables.map(({ name, type, declared_type }) => ({ name, type: declared_type ?? type ?? "" }));
  await session.writeVariables(formatVariablesFile(typed, variables));
  const serverValues = {
    [SNAPSHOT_NAME]: JSON.parse(source),
    slipway_snapshot_id: snapshot_id,
    slipway_workspace_id: workspace_id,
  };
  await session.writeValues(
    Object.fromEntries(Object.entries(serverValues).filter(([name]) => variableNames.includes(name))),
  );
  return state;
};

const NO_OUTPUT_MESSAGE = `The module in ${SNAPSHOT_FOLDER} returned no output "${SNAPSHOT_NAME}", so nothing could be restored from it.`;

const readFiles = async (folder: string) =>
  Promise.all(
    (await readdir(folder))
      .filter(isTemplateFile)
      .map(async (name) => ({ name, text: await readFile(join(folder, name), "utf8") })),
  );

const addState = (error: unknown, state: string | null): ProvisionError => {
  const message = error instanceof Error ? error.message : "The snapshot was ended.";
  return new ProvisionError(message, "", { state }, { cause: error });
};

/** Returns a report that writes errors to the server's log, because snapshots have no log of their own. */
const toReport = (snapshot_id: string): Report => ({
  log(level, stage, output) {
    if (level === "error" || level === "warn")
      log("snapshots").warn("{snapshot_id}: {stage}: {output}", { snapshot_id, stage, output });
  },
  timing() {},
});
