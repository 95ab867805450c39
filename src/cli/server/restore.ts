// `slipway restore BACKUP --data-dir EMPTY [--json]`, or `slipway restore BACKUP --check`: restores a backup into an empty data directory,
// or only verifies it.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { loadConfig } from "#base/config.ts";
import { usageError } from "#base/usage-error.ts";
import { Flow } from "#db/backup/flow.ts";
import type { Manifest } from "#db/backup/manifest.ts";
import { restoreBackup, verifyBackup } from "#db/backup/restore.ts";
import { type RunVerb, takePath, takeSwitch } from "../verb.ts";
import { explainErrors } from "./backup.ts";
import { TerminalProgress } from "./progress.ts";

export const run: RunVerb = async (input) => {
  const { isGiven: json, rest: withoutJson } = takeSwitch(input.argv, "--json");
  const { isGiven: check, rest } = takeSwitch(withoutJson, "--check");
  const { path, rest: argv } = takePath(rest);
  if (path === undefined) throw usageError("restore", "expected a backup: a folder slipway-… or a .tar file");
  const { config } = loadConfig({ ...input, argv });
  return explainErrors("restore", input, check ? undefined : config.data_dir, async () => {
    using progress = new TerminalProgress(input, check ? `checking ${path}` : `restoring ${path}`);
    const flow = new Flow(input.clock, 0, input.signal, progress.report);
    const manifest = check ? await verify(path, flow) : await restoreBackup(path, config.data_dir, flow);
    progress[Symbol.dispose]();
    if (json) input.print(JSON.stringify(toManifestFields(manifest, check ? null : config.data_dir)));
    else if (check) input.print(`${path} is intact: ${formatSummary(manifest)}.`);
    else input.print(`Restored ${formatSummary(manifest)} into ${resolve(config.data_dir)}.`);
    if (!json && !check) for (const line of describeHomes(manifest)) input.print(line);
  });
};

/** Verifies the backup. It is unpacked into a folder next to it, where there is enough space. */
const verify = async (path: string, flow: Flow): Promise<Manifest> => {
  const scratch = createScratchFolder(dirname(resolve(path)));
  try {
    return await verifyBackup(path, scratch, flow);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
};

/** Creates a folder in `folder`, or in the system's temporary folder, because backups may be on a read-only disk. */
const createScratchFolder = (folder: string): string => {
  try {
    return mkdtempSync(join(folder, ".check-"));
  } catch (error) {
    if (!/^(EACCES|EPERM|EROFS)$/.test(String((error as { code?: unknown }).code))) throw error;
    return mkdtempSync(join(tmpdir(), "slipway-check-"));
  }
};

const formatSummary = ({ created_at, version, files }: Manifest): string =>
  `the backup of ${created_at} (Slipway ${version}, ${files.length} files)`;

/** Describes the homes that the backup refers to but does not contain. */
const describeHomes = ({ homes = [] }: Manifest): string[] =>
  homes.map(
    ({ location, workspaces }) =>
      `The files of ${workspaces} ${workspaces === 1 ? "workspace are" : "workspaces are"} in ${location}. Restore them with \`slipway home-backups restore\`.`,
  );

const toManifestFields = ({ created_at, version, schema, files }: Manifest, data_dir: string | null) => ({
  data_dir: data_dir === null ? null : resolve(data_dir),
  created_at,
  version,
  schema,
  files: files.length,
  bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
});
