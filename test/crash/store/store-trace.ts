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
  const started = new Map<string, Event | undefined>();
  const lines = trace.split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] as string;
    const resumed = /^(\d+)\s+<\.\.\. \w+ resumed>.*= (-?\d+)/.exec(line);
    if (resumed) {
      const event = started.get(resumed[1] as string);
      started.delete(resumed[1] as string);
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
      started.set(pid, event);
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
const WAL = "slipway.db-wal";

/** A file that is built up by writes: its buffer grows by doubling, as a copy for each write makes long traces slow. */
class FileImage {
  #buffer = new Uint8Array(1 << 16);
  #size = 0;

  write(offset: number, data: Uint8Array): void {
    const end = offset + data.length;
    if (end > this.#buffer.length) {
      const larger = new Uint8Array(Math.max(end, this.#buffer.length * 2));
      larger.set(this.#buffer.subarray(0, this.#size));
      this.#buffer = larger;
    }
    this.#buffer.set(data, offset);
    this.#size = Math.max(this.#size, end);
  }

  truncate(size: number): void {
    if (size > this.#size) this.write(size - 1, new Uint8Array(1));
    this.#buffer.fill(0, size, this.#size);
    this.#size = size;
  }

  get bytes(): Uint8Array {
    return this.#buffer.subarray(0, this.#size);
  }
}

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
  const files = new Map<string, FileImage>();
  const flushedUntil = listFlushes(events, point);
  for (const event of events) {
    if (event.from > point || event.kind === "say" || event.kind === "sync") continue;
    if (event.kind === "unlink") {
      files.delete(event.file);
      continue;
    }
    const file = files.get(event.file) ?? new FileImage();
    files.set(event.file, file);
    const isFlushed = event.to < (flushedUntil.get(event.file) ?? Number.NEGATIVE_INFINITY);
    if (isFlushed || loss === "everything" || (loss === "some" && random() < 0.5)) applyEvent(file, event);
    else if (loss === "torn") applyTorn(file, event, random);
  }
  return new Map([...files].map(([name, file]) => [name, file.bytes]));
};

/** Returns, by file, when the last flush that has returned by `point` started: it covers all changes that were complete by then. */
const listFlushes = (events: readonly Event[], point: number): Map<string, number> => {
  const latest = new Map<string, number>();
  for (const one of events)
    if (one.kind === "sync" && one.to <= point)
      latest.set(one.file, Math.max(one.from, latest.get(one.file) ?? Number.NEGATIVE_INFINITY));
  return latest;
};

const applyEvent = (file: FileImage, event: Event): void => {
  if (event.kind === "truncate") file.truncate(event.size);
  if (event.kind === "write") file.write(event.offset, event.data);
};

const applyTorn = (file: FileImage, event: Event, random: () => number): void => {
  if (event.kind !== "write") {
    if (random() < 0.5) applyEvent(file, event);
    return;
  }
  for (let at = 0; at < event.data.length; at += SECTOR)
    if (random() < 0.5) file.write(event.offset + at, event.data.subarray(at, at + SECTOR));
};

/** Returns the bytes of the log that were written but not flushed when the process started `reported`. */
export const countUnflushed = (events: readonly Event[], reported: Event): number => {
  const flushed = listFlushes(events, reported.from).get(WAL) ?? Number.NEGATIVE_INFINITY;
  return events.filter(
    (one) => one.file === WAL && one.kind === "write" && one.from < reported.from && one.to >= flushed,
  ).length;
};
