// A process's operations on its database files, as seen by the kernel: parses strace's output into events, and computes possible states of
// the disk after a power failure between them (RELIABILITY section 4, "Power loss").

export const TRACE_CALLS = "pwrite64,ftruncate,fsync,fdatasync,unlink,unlinkat,write";

/** Positions are line numbers of the trace: `from` when the call started, `to` when it returned. */
export type Event = { from: number; to: number; file: string } & (
  | { kind: "write"; offset: number; data: Uint8Array }
  | { kind: "truncate"; size: number }
  | { kind: "sync" }
  | { kind: "unlink" }
  | { kind: "say"; text: string }
);

const FILES = /\/(slipway\.db(?:-wal|-journal)?)$/;

const parseHex = (hex: string): Uint8Array => Uint8Array.fromHex(hex.replaceAll("\\x", ""));
const parseHexText = (hex: string): string => new TextDecoder().decode(parseHex(hex));

/** The strace options that this file can parse: all threads, file names, all bytes in hexadecimal. */
export const straceCommand = (file: string): string[] => [
  "strace",
  "-f",
  "-y",
  "-xx",
  "-s",
  "1000000",
  "-e",
  `trace=${TRACE_CALLS}`,
  "-o",
  file,
];

/** Parses a trace. Skips failed calls; the process's standard output becomes `say` events, line by line. */
export const readTrace = (trace: string): Event[] => {
  const events: Event[] = [];
  const begun = new Map<string, Event | undefined>();
  const lines = trace.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] as string;
    const resumed = /^(\d+)\s+<\.\.\. \w+ resumed>.*= (-?\d+)/.exec(line);
    if (resumed) {
      const event = begun.get(resumed[1] as string);
      begun.delete(resumed[1] as string);
      if (event && Number(resumed[2]) >= 0) event.to = at;
      continue;
    }
    const call = /^(\d+)\s+(\w+)\((.*)$/s.exec(line);
    if (!call) continue;
    const [, pid = "", name = "", rest = ""] = call;
    const event = parseEvent(name, rest, at);
    if (event) events.push(event);
    if (rest.endsWith("<unfinished ...>")) {
      if (event) event.to = Number.POSITIVE_INFINITY;
      begun.set(pid, event);
    } else if (event && / = -1 /.test(rest)) {
      events.pop();
    }
  }
  return events;
};

const parseEvent = (name: string, rest: string, at: number): Event | undefined => {
  if (name === "unlink" || name === "unlinkat") {
    const file = FILES.exec(parseHexText(/"([^"]*)"/.exec(rest)?.[1] ?? ""))?.[1];
    return file ? { kind: "unlink", from: at, to: at, file } : undefined;
  }
  const [, fd, path = ""] = /^(\d+)<([^>]*)>/.exec(rest) ?? [];
  const data = /, "([^"]*)"/.exec(rest)?.[1] ?? "";
  if (name === "write")
    return fd === "1" ? { kind: "say", from: at, to: at, file: "", text: parseHexText(data) } : undefined;
  const file = FILES.exec(parseHexText(path))?.[1];
  if (!file) return undefined;
  const place = { from: at, to: at, file };
  if (name === "pwrite64") {
    const offset = Number(/", \d+, (\d+)/.exec(rest)?.[1]);
    return { ...place, kind: "write", offset, data: parseHex(data) };
  }
  if (name === "ftruncate") return { ...place, kind: "truncate", size: Number(/>, (\d+)/.exec(rest)?.[1]) };
  return { ...place, kind: "sync" };
};

/** The fate of unflushed data. */
export type Loss = "nothing" | "everything" | "some" | "torn";
export const LOSSES: readonly Loss[] = ["nothing", "everything", "some", "torn"];

const SECTOR = 512;

/**
 * Returns the files as they may be found after a power failure at `point`: everything flushed by then, and of the rest what `loss` allows:
 * nothing, everything, some of the writes, or some of their sectors.
 */
export const buildDiskImage = (
  events: readonly Event[],
  point: number,
  loss: Loss,
  random: () => number,
): Map<string, Uint8Array> => {
  const files = new Map<string, Uint8Array>();
  for (const event of events) {
    if (event.from > point || event.kind === "say" || event.kind === "sync") continue;
    if (event.kind === "unlink") {
      files.delete(event.file);
      continue;
    }
    const old = files.get(event.file) ?? new Uint8Array();
    if (isFlushed(events, event, point)) files.set(event.file, applyEvent(old, event));
    else if (loss === "everything" || (loss === "some" && random() < 0.5))
      files.set(event.file, applyEvent(old, event));
    else if (loss === "torn") files.set(event.file, applyTorn(old, event, random));
    else files.set(event.file, old);
  }
  return files;
};

/** Returns true if a flush of its file that started after the change has itself returned. */
const isFlushed = (events: readonly Event[], change: Event, point: number): boolean =>
  events.some((one) => one.kind === "sync" && one.file === change.file && one.from > change.to && one.to <= point);

const applyEvent = (old: Uint8Array, event: Event): Uint8Array => {
  if (event.kind === "truncate") {
    const cut = new Uint8Array(event.size);
    cut.set(old.subarray(0, event.size));
    return cut;
  }
  if (event.kind !== "write") return old;
  const end = event.offset + event.data.length;
  const next = new Uint8Array(Math.max(old.length, end));
  next.set(old);
  next.set(event.data, event.offset);
  return next;
};

const applyTorn = (old: Uint8Array, event: Event, random: () => number): Uint8Array => {
  if (event.kind !== "write") return random() < 0.5 ? applyEvent(old, event) : old;
  let file = old;
  for (let at = 0; at < event.data.length; at += SECTOR) {
    const data = event.data.subarray(at, at + SECTOR);
    if (random() < 0.5) file = applyEvent(file, { ...event, offset: event.offset + at, data });
  }
  return file;
};

/** Returns the bytes of the log that were written but not flushed when the process started `reported`. */
export const countUnflushed = (events: readonly Event[], reported: Event): number =>
  events
    .filter((one) => one.file === "slipway.db-wal" && one.kind === "write" && one.from < reported.from)
    .filter((one) => !isFlushed(events, one, reported.from)).length;
