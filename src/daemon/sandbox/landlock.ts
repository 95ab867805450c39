// Runs programs that cannot write files, using the Linux security module Landlock. Landlock needs no privileges, helper programs or
// containers, and child processes cannot escape it. It does not block changes of modes and times, or requests to programs that already
// listen on a socket (rule PM-6).
import { ptr } from "bun:ffi";
import { log } from "#base/log.ts";
import { loadSystemLibrary } from "#base/system/library.ts";

/** The first version of Landlock that also restricts truncating a file by name. */
const MIN_VERSION = 3;
/** The first version of Landlock that also blocks signals to programs outside of the sandbox. */
const MIN_SCOPED_VERSION = 6;

// linux/landlock.h: the rights to change files, by bit.
const WRITE_FILE = 1n << 1n;
const TRUNCATE = 1n << 14n;
const REMOVE_DIR_TO_MAKE_SYM = 0b1_1111_1111n << 4n;
const REFER = 1n << 13n;
const CHANGES = WRITE_FILE | REMOVE_DIR_TO_MAKE_SYM | REFER | TRUNCATE;
const SYS_LANDLOCK_CREATE_RULESET = 444n;
const SYS_LANDLOCK_ADD_RULE = 445n;
const SYS_LANDLOCK_RESTRICT_SELF = 446n;
const PATH_BENEATH = 1n;
const O_PATH = 0x200000 | 0x80000;
const SET_NO_NEW_PRIVS = 38;
const SIGPIPE = 13;

/** Devices that are always writable, since they store nothing. */
const WRITABLE_DEVICES = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty"];

const SYMBOLS = {
  syscall: { args: ["i64", "i64", "i64", "i64", "i64"], returns: "i64" },
  prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
  open: { args: ["ptr", "i32"], returns: "i32" },
  signal: { args: ["i32", "u64"], returns: "u64" },
  execvp: { args: ["ptr", "ptr"], returns: "i32" },
} as const;

const loadLibrary = () => loadSystemLibrary(SYMBOLS);

let cachedSupport: boolean | undefined;

/** Returns true if programs can be restricted here. */
export const canRestrictWrites = (): boolean => {
  cachedSupport ??= readVersion(loadLibrary()) >= MIN_VERSION;
  return cachedSupport;
};

type Library = NonNullable<ReturnType<typeof loadLibrary>>;

const readVersion = (c: Library | undefined): number =>
  c ? Number(c.syscall(SYS_LANDLOCK_CREATE_RULESET, 0n, 0n, 1n, 0n)) : 0;

/**
 * Replaces this process with a program that may write only these files. Ignores files that do not exist. Never returns. Throws Error if the
 * restriction or the start fails.
 */
export const execReadOnly = (command: readonly [string, ...string[]], writable: readonly string[]): never => {
  const library = loadLibrary();
  const version = readVersion(library);
  if (!library || version < MIN_VERSION) throw new Error("This system has no Landlock of version 3 or later.");
  const isScoped = version >= MIN_SCOPED_VERSION;
  // handled_access_fs, handled_access_net, scoped: abstract sockets and signals.
  const attributes = new BigUint64Array([CHANGES, 0n, 3n]);
  const size = isScoped ? 24n : 8n;
  const rules = library.syscall(SYS_LANDLOCK_CREATE_RULESET, BigInt(ptr(attributes)), size, 0n, 0n);
  if (rules < 0n) throw new Error("Landlock could not create a rule set.");
  for (const path of [...WRITABLE_DEVICES, ...writable]) {
    const file = library.open(ptr(toCString(path)), O_PATH);
    if (file < 0) continue;
    const rule = new DataView(new ArrayBuffer(12));
    rule.setBigUint64(0, WRITE_FILE | TRUNCATE, true);
    rule.setInt32(8, file, true);
    const added = library.syscall(
      SYS_LANDLOCK_ADD_RULE,
      rules,
      PATH_BENEATH,
      BigInt(ptr(new Uint8Array(rule.buffer))),
      0n,
    );
    if (added < 0n) log("daemon").warn("{path} cannot be left writable", { path });
  }
  if (library.prctl(SET_NO_NEW_PRIVS, 1n, 0n, 0n, 0n) !== 0)
    throw new Error("The program cannot be kept from new rights.");
  if (library.syscall(SYS_LANDLOCK_RESTRICT_SELF, rules, 0n, 0n, 0n) !== 0n)
    throw new Error("Landlock could not restrict the process.");
  // Restores the default that a program has when a shell starts it.
  library.signal(SIGPIPE, 0n);
  const commandStrings = command.map(toCString);
  const argv = new BigUint64Array([...commandStrings.map((word) => BigInt(ptr(word))), 0n]);
  library.execvp(ptr(commandStrings[0] as Buffer), ptr(argv));
  throw new Error(`${command[0]} cannot be started.`);
};

const toCString = (text: string): Buffer => Buffer.from(`${text}\0`);
