// `slipway upgrade [--check] [--file FILE] [--back] [settings]`: backs up the data, replaces this program with a newer, signed one, restarts
// the service, and rolls back program and data if the newer one does not start. If it is killed at any step, a working program remains
// (rule UP-5).
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Config } from "#base/config.ts";
import { loadConfig } from "#base/config.ts";
import { armFailpoint, failpoint } from "#base/failpoint.ts";
import { LockedError } from "#base/lock-file.ts";
import { SignatureError } from "#base/minisign.ts";
import { getOwnBinary } from "#base/program.ts";
import { pause } from "#base/retry.ts";
import { usageError } from "#base/usage-error.ts";
import { VERSION } from "#base/version.ts";
import { makeBackup } from "#db/backup/backup.ts";
import { BackupError, DATABASE } from "#db/backup/manifest.ts";
import { toBackupFolder } from "#db/backup/schedule.ts";
import { NoUsableCopyError, revertToCopy } from "#db/engine/downgrade.ts";
import { isInUse } from "#db/engine/inspect.ts";
import { takeOptions } from "../../options.ts";
import { EXIT, type RunVerb, takeSwitch, type VerbInput } from "../../verb.ts";
import { requestOwnServer } from "../health.ts";
import { changeToOwner } from "../ownership.ts";
import { UpgradeError } from "./error.ts";
import { ProgramFile, readVersion } from "./program-file.ts";
import { countRestarts, findService, hasGivenUp, runSystemctl, type Service } from "./service.ts";
import { loadOfferFromAddress, loadOfferFromFile, type Offer, parseTrustedKeys } from "./source.ts";

/** Migrating a large database may take long. */
const START_TIMEOUT_MS = 300_000;
const POLL_INTERVAL_MS = 250;

type ExpectedServer = {
  readonly input: VerbInput;
  readonly config: Config;
  readonly version: string;
  readonly unit: string;
  /** The unit's restart count before the restart. */
  readonly restartsBefore: number;
};

/** Returns undefined once the server is ready, otherwise the reason for the failure. */
const waitUntilReady = async ({
  input,
  config,
  version,
  unit,
  restartsBefore,
}: ExpectedServer): Promise<string | undefined> => {
  const { clock, signal } = input;
  const startedAt = clock.now();
  for (;;) {
    if (signal.aborted) return "interrupted";
    if ((await requestOwnServer(config, "/readyz", signal)) !== undefined) {
      const running = (await requestOwnServer(config, "/api/v2/buildinfo", signal))?.version;
      return running?.endsWith(`slipway.${version}`) ? undefined : `the server reports version ${running}`;
    }
    if (await hasGivenUp(unit, restartsBefore)) return `its service failed; see "journalctl -u ${unit}"`;
    if (clock.now() - startedAt > START_TIMEOUT_MS)
      return `it was not ready after ${START_TIMEOUT_MS / 60_000} minutes`;
    await pause(clock, POLL_INTERVAL_MS);
  }
};

const SWITCHES = ["check", "back", "allow-downgrade", "no-backup"] as const;
/** Exit code of --check if there is a newer release. */
const NEWER_RELEASE_EXISTS = 1;

type UpgradeCommand = {
  readonly input: VerbInput;
  readonly has: Readonly<Record<(typeof SWITCHES)[number], boolean>>;
  readonly program: ProgramFile;
  readonly service: Service | undefined;
  readonly config: Config;
  readonly file: string | undefined;
  /** The settings from the command line. */
  readonly settings: readonly string[];
};

export const run: RunVerb = async (input) => {
  try {
    if (input.env.SLIPWAY_FAILPOINT) armFailpoint(input.env.SLIPWAY_FAILPOINT);
    const command = await readCommand(input);
    return command.has.back ? await rollBack(command) : await upgrade(command);
  } catch (error) {
    const isExplained = [UpgradeError, SignatureError, BackupError, LockedError, NoUsableCopyError].some(
      (one) => error instanceof one,
    );
    if (!isExplained) throw error;
    input.printError(`slipway upgrade: ${(error as Error).message}\n`);
    return EXIT.failed;
  }
};

const readCommand = async (input: VerbInput): Promise<UpgradeCommand> => {
  let argv = input.argv;
  const has = { check: false, back: false, "allow-downgrade": false, "no-backup": false };
  for (const name of SWITCHES) {
    const { isGiven, rest } = takeSwitch(argv, `--${name}`);
    has[name] = isGiven;
    argv = rest;
  }
  const { words, options, rest: settings } = takeOptions(argv, ["file", "unit", "program"]);
  if (words[0] !== undefined) throw usageError(words[0], "unexpected argument");
  if (has.back && (has.check || options.file !== undefined)) throw usageError("--back", "not with --check or --file");
  const path = options.program ?? getOwnBinary()?.replace(/\.before$/, "");
  if (path === undefined)
    throw new UpgradeError("this program runs from source; specify the program to replace with --program");
  const program = new ProgramFile(path);
  const service = await findService(options.unit ?? "slipway.service", program.path);
  // Uses the service's own settings unless some are given here.
  const running = settings.length === 0 ? service?.settings : undefined;
  const { config } = loadConfig({
    ...input,
    argv: running?.argv ?? settings,
    env: Object.assign({}, running?.env, input.env),
  });
  return { input, has, program, service, config, file: options.file, settings };
};

const upgrade = async (command: UpgradeCommand): Promise<number> => {
  const { input, has, program } = command;
  // --check needs no lock. Two concurrent upgrades would remove and restart each other's program.
  using _lock = has.check ? undefined : program.lock();
  const offer = await findOffer(command);
  const installed = (await readVersion(program.path)) ?? VERSION;
  const order = Bun.semver.order(offer.version, installed);
  if (has.check) {
    input.print(
      order > 0
        ? `Slipway ${offer.version} is available; this is ${installed}.`
        : `Slipway ${installed} is the newest release.`,
    );
    return order > 0 ? NEWER_RELEASE_EXISTS : EXIT.ok;
  }
  if (order === 0) {
    input.print(`Slipway ${installed} is already installed.`);
    return EXIT.ok;
  }
  if (order < 0 && !has["allow-downgrade"]) {
    throw new UpgradeError(
      `${offer.from} is Slipway ${offer.version}, older than ${installed}; pass --allow-downgrade to install it anyway`,
    );
  }
  if (command.config.database_url !== undefined && !has["no-backup"]) {
    throw new UpgradeError(
      "the data is in PostgreSQL, which this command cannot back up or restore; back it up yourself, then pass --no-backup",
    );
  }
  requireData(command);
  program.removeLeftovers();
  try {
    input.print(`Fetching Slipway ${offer.version} from ${offer.from}`);
    await offer.unpack(program.nextPath);
    failpoint("upgrade_unpacked");
    await program.check(offer.version);
    await createBackup(command);
    failpoint("upgrade_backed_up");
    program.replace();
  } finally {
    program.removeLeftovers();
  }
  failpoint("upgrade_replaced");
  input.print(
    `Installed Slipway ${offer.version} as ${program.path}. The previous program is kept as ${program.previousPath}.`,
  );
  return await restart(command, offer.version, installed);
};

const findOffer = async ({ input, program, config, file }: UpgradeCommand): Promise<Offer> => {
  const keys = parseTrustedKeys(config.release_key);
  if (file !== undefined) return loadOfferFromFile(file, program.system, keys);
  if (config.release_url !== undefined)
    return loadOfferFromAddress(config.release_url, program.system, keys, input.signal);
  throw new UpgradeError("set release_url to the address of releases, or pass a downloaded program with --file");
};

/** Throws UpgradeError if a service's data directory is missing: nothing would be backed up or restored. */
const requireData = ({ service, config, has }: UpgradeCommand): void => {
  if (service === undefined || hasData(config) || has["no-backup"]) return;
  throw new UpgradeError(
    `there is no database in ${config.data_dir}; pass the server's settings, or --no-backup if its data is elsewhere`,
  );
};

const hasData = ({ database_url, data_dir }: Config): boolean =>
  database_url === undefined && existsSync(join(data_dir, DATABASE));

/** A machine with only the client has nothing to back up. */
const createBackup = async ({ input, has, config }: UpgradeCommand): Promise<void> => {
  const { data_dir } = config;
  if (has["no-backup"] || !hasData(config)) return;
  try {
    const { clock, signal } = input;
    const created = await makeBackup({
      data_dir,
      target: toBackupFolder(config),
      clock,
      signal,
      rateMb: config.backup_rate_mb,
    });
    input.print(`Backup: ${created.path}`);
  } finally {
    changeToOwner(data_dir);
  }
};

const restart = async (command: UpgradeCommand, version: string, installed: string): Promise<number> => {
  const { input, service, program, config } = command;
  if (!service?.isRunning) {
    if (service) input.print(`The service is not running. Start it with: systemctl start ${service.unit}`);
    else if (config.database_url === undefined && existsSync(config.data_dir) && isInUse(config.data_dir)) {
      input.print("A server is still running the previous program. Restart it to use the new one.");
      input.print(`If it does not start, run: ${program.previousPath} upgrade --back`);
    }
    return EXIT.ok;
  }
  const restartsBefore = await countRestarts(service.unit);
  let failure: string | undefined;
  try {
    await runSystemctl(service.unit, "restart");
    failpoint("upgrade_restarted");
    failure = await waitUntilReady({ input, config, version, unit: service.unit, restartsBefore });
  } catch (error) {
    if (!(error instanceof UpgradeError)) throw error;
    failure = error.message;
  }
  if (failure === undefined) {
    input.print(`Slipway ${version} is ready.`);
    return EXIT.ok;
  }
  if (input.signal.aborted) return EXIT.interrupted;
  input.printError(`slipway upgrade: Slipway ${version} did not start: ${failure}. Rolling back to ${installed}.\n`);
  await restorePrevious(command, installed);
  return EXIT.failed;
};

/** Handles `--back`. The previous program performs it, because it knows which data it can use. */
const rollBack = async (command: UpgradeCommand): Promise<number> => {
  const { input, program, settings, service } = command;
  const previousVersion = await readVersion(program.previousPath);
  if (previousVersion === undefined)
    throw new UpgradeError(`there is no previous program to go back to: ${program.previousPath}`);
  if (previousVersion === VERSION) {
    requireData(command);
    using _lock = program.lock();
    await restorePrevious(command, previousVersion);
    return EXIT.ok;
  }
  const unit = service === undefined ? [] : ["--unit", service.unit];
  const child = Bun.spawn(
    [program.previousPath, "upgrade", "--back", "--program", program.path, ...unit, ...settings],
    {
      stdio: ["ignore", "pipe", "pipe"],
      env: input.env,
    },
  );
  const [output, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (output !== "") input.print(output.trimEnd());
  if (errors !== "") input.printError(errors);
  return code;
};

/** Rolls back. Each step is idempotent: an interrupted rollback is repeated. */
const restorePrevious = async ({ input, program, service, config }: UpgradeCommand, version: string): Promise<void> => {
  if (service) await runSystemctl(service.unit, "stop");
  failpoint("upgrade_stopped");
  if (config.database_url === undefined && existsSync(config.data_dir)) {
    const reverted = revertToCopy(config.data_dir);
    changeToOwner(config.data_dir);
    if (reverted)
      input.print(
        `The database was restored from ${reverted.copy}. The newer program's database is kept as ${reverted.kept}.`,
      );
  }
  failpoint("upgrade_data_back");
  program.restorePrevious();
  failpoint("upgrade_program_back");
  input.print(`Restored Slipway ${version} as ${program.path}.`);
  if (!service) return;
  const restartsBefore = await countRestarts(service.unit);
  await runSystemctl(service.unit, "start");
  const failure = await waitUntilReady({ input, config, version, unit: service.unit, restartsBefore });
  if (failure !== undefined) throw new UpgradeError(`Slipway ${version} did not start either: ${failure}`);
  input.print(`Slipway ${version} is ready.`);
};
