// `slipway home-backups key`, `search` and `extract`: prints the recovery key, and restores with only the key and the folder or bucket.

import { loadConfig } from "#base/config.ts";
import { EncryptionKeyError, hasKey, openEncryption, parseEncryptionKey } from "#base/encryption.ts";
import { formatSize } from "#base/format-size.ts";
import { usageError } from "#base/usage-error.ts";
import { HomeBackupError } from "#src/home-backups/error.ts";
import { extract } from "#src/home-backups/extract.ts";
import { deriveRecoveryKey, HomeBackupStore, type Manifest } from "#src/home-backups/store.ts";
import { formatTable, takeOptions } from "../options.ts";
import { toPlainLine } from "../text.ts";
import { EXIT, type RunVerb, takeSwitch, type VerbInput } from "../verb.ts";

type Config = ReturnType<typeof loadConfig>["config"];

/** Prints the recovery key. */
export const key: RunVerb = (input) =>
  reportErrors("key", input, async () => {
    const { isGiven: json, rest: argv } = takeSwitch(input.argv, "--json");
    const recovery_key = readRecoveryKey(loadConfig({ ...input, argv }).config);
    input.print(json ? JSON.stringify({ recovery_key }) : recovery_key);
  });

/** Lists the backups in the folder or bucket. */
export const search: RunVerb = (input) =>
  reportErrors("search", input, async () => {
    const { isGiven: json, rest } = takeSwitch(input.argv, "--json");
    const { words, rest: argv } = takeOptions(rest, []);
    if (words.length > 1) throw usageError("home-backups search", "expected one workspace at most");
    const found = filterBackups(await openStore(input, argv).list(), words[0]);
    if (json) input.print(JSON.stringify(found.map(toManifestFields)));
    else if (found.length === 0) input.print("No home backups.");
    else {
      const head = ["ID", "WORKSPACE", "CREATED", "SIZE", "ENGINE"];
      input.print(
        formatTable(
          head,
          found.map((one) => [
            one.id.slice(0, 8),
            toPlainLine(`${one.owner_name}/${one.workspace_name}`),
            new Date(one.created_at).toISOString(),
            formatSize(one.bytes),
            one.engine,
          ]),
        ),
      );
    }
  });

/** Unpacks one backup into a folder. */
export const extractOne: RunVerb = (input) =>
  reportErrors("extract", input, async () => {
    const { isGiven: json, rest } = takeSwitch(input.argv, "--json");
    const { words, rest: argv } = takeOptions(rest, []);
    const [wanted, folder, ...more] = words;
    if (wanted === undefined || folder === undefined || more.length > 0) {
      throw usageError("home-backups extract", "expected a backup or workspace, and a folder");
    }
    const store = openStore(input, argv);
    const all = filterBackups(await store.list(), wanted);
    const manifest = all[0];
    if (!manifest) throw new HomeBackupError(`there is no backup ${wanted} in ${store.storage.url}.`);
    const workspaces = new Set(all.map(({ workspace_id }) => workspace_id));
    if (workspaces.size > 1) throw new HomeBackupError(`several workspaces match ${wanted}; use the ID of a backup`);
    await extract(store.read(manifest, input.signal), folder);
    const { created_at, owner_name, workspace_name } = manifest;
    const shown = `The files of ${toPlainLine(`${owner_name}/${workspace_name}`)} as of ${new Date(created_at).toISOString()} are in ${folder}.`;
    input.print(json ? JSON.stringify(toManifestFields(manifest)) : shown);
  });

/** Filters backups by ID, ID prefix, workspace ID or name, or owner/name; newest first. */
const filterBackups = (all: readonly Manifest[], wanted: string | undefined): readonly Manifest[] => {
  if (wanted === undefined) return all;
  const text = wanted.toLowerCase();
  const byId = all.filter(({ id }) => id.startsWith(text));
  if (byId.length === 1) return byId;
  return all.filter(({ workspace_id, workspace_name, owner_name }) =>
    [workspace_id, workspace_name.toLowerCase(), `${owner_name}/${workspace_name}`.toLowerCase()].includes(text),
  );
};

const toManifestFields = ({ chunks: _, restic_snapshot: __, created_at, ...facts }: Manifest) =>
  Object.assign(facts, { created_at: new Date(created_at).toISOString() });

const openStore = (input: VerbInput, argv: readonly string[]): HomeBackupStore => {
  const { config } = loadConfig({ ...input, argv: [...argv] });
  const deps = { config, clock: input.clock, path: input.env.PATH, recovery_key: readRecoveryKey(config) };
  const store = HomeBackupStore.open(deps);
  if (store) return store;
  throw new HomeBackupError(
    "set the location of the backups: --home-backup-dir, or --home-backup-s3-bucket and its keys",
  );
};

const readRecoveryKey = ({ home_backup_recovery_key, encryption_key, data_dir }: Config): string => {
  if (home_backup_recovery_key !== undefined) return home_backup_recovery_key;
  if (encryption_key !== undefined) return deriveRecoveryKey(parseEncryptionKey(encryption_key));
  // A newly generated key would decrypt nothing.
  if (hasKey(data_dir)) return deriveRecoveryKey(openEncryption(data_dir));
  throw new HomeBackupError(
    `There is no encryption key in ${data_dir}. Set home_backup_recovery_key, or SLIPWAY_HOME_BACKUP_RECOVERY_KEY.`,
  );
};

const reportErrors = async (verb: string, input: VerbInput, work: () => Promise<void>): Promise<number> => {
  try {
    await work();
    return EXIT.ok;
  } catch (error) {
    if (!(error instanceof HomeBackupError || error instanceof EncryptionKeyError)) throw error;
    input.printError(`slipway home-backups ${verb}: ${error.message}\n`);
    return EXIT.failed;
  }
};
