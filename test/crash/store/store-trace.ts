// The operations of a process on its database files, as the kernel sees them: parses strace's output into events, and computes possible
// states of the disk after a power failure between them (RELIABILITY section 4, "Power loss").

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

/** Returns the strace command whose output this file can parse: all threads, file names, all bytes in hexadecimal. */
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

/** Parses a trace. Skips failed calls. The process's standard output becomes `say` events, one for each write. */
export const readTrace = (trace: string): Event[] => {
  const events: Event[] = [];
  const started = new Map<string, Event | undefined>();
  const lines = trace.split("\n");
  for (let lineNumber = 0; lineNumber < lines.length; lineNumber++) {
    const line = lines[lineNumber] as string;
    const resumed = /^(\d+)\s+<\.\.\. \w+ resumed>.*= (-?\d+)/.exec(line);
    if (resumed) {
      const event = started.get(resumed[1] as string);
      started.delete(resumed[1] as string);
      if (event && Number(resumed[2]) >= 0) event.to = lineNumber;
      continue;
    }
    const call = /^(\d+)\s+(\w+)\((.*)$/s.exec(line);
    if (!call) continue;
    const [, pid = "", name = "", argumentText = ""] = call;
    const event = parseEvent(name, argumentText, lineNumber);
    if (event) events.push(event);
    if (argumentText.endsWith("<unfinished ...>")) {
      if (event) event.to = Number.POSITIVE_INFINITY;
      started.set(pid, event);
    } else if (event && / = -1 /.test(argumentText)) {
      events.pop();
    }
  }
  return events;
};

const parseEvent = (name: string, argumentText: string, lineNumber: number): Event | undefined => {
  if (name === "unlink" || name === "unlinkat") {
    const file = FILES.exec(parseHexText(/"([^"]*)"/.exec(argumentText)?.[1] ?? ""))?.[1];
    return file ? { kind: "unlink", from: lineNumber, to: lineNumber, file } : undefined;
  }
  const [, fd, path = ""] = /^(\d+)<([^>]*)>/.exec(argumentText) ?? [];
  const data = /, "([^"]*)"/.exec(argumentText)?.[1] ?? "";
  if (name === "write")
    return fd === "1"
      ? { kind: "say", from: lineNumber, to: lineNumber, file: "", text: parseHexText(data) }
      : undefined;
  const file = FILES.exec(parseHexText(path))?.[1];
  if (!file) return undefined;
  const base = { from: lineNumber, to: lineNumber, file };
  if (name === "pwrite64") {
    const offset = Number(/", \d+, (\d+)/.exec(argumentText)?.[1]);
    return { ...base, kind: "write", offset, data: parseHex(data) };
  }
  if (name === "ftruncate") return { ...base, kind: "truncate", size: Number(/>, (\d+)/.exec(argumentText)?.[1]) };
  return { ...base, kind: "sync" };
};

/** What happens to data that was not flushed. */
export type Loss = "nothing" | "everything" | "some" | "torn";
export const LOSSES: readonly Loss[] = ["nothing", "everything", "some", "torn"];

const SECTOR_BYTES = 512;
const WAL = "slipway.db-wal";

/** A file that is built up by writes. Its buffer grows by doubling, because a copy for each write makes long traces slow. */
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
 * Returns the files as they may be after a power failure at `point`: everything that was flushed by then, and of all other changes what
 * `loss` allows: nothing, everything, some of the writes, or some of their sectors.
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

/** Returns, by file, when the last flush that had returned by `point` started. That flush covers all changes that were complete by then. */
const listFlushes = (events: readonly Event[], point: number): Map<string, number> => {
  const latest = new Map<string, number>();
  for (const event of events)
    if (event.kind === "sync" && event.to <= point)
      latest.set(event.file, Math.max(event.from, latest.get(event.file) ?? Number.NEGATIVE_INFINITY));
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
  for (let offset = 0; offset < event.data.length; offset += SECTOR_BYTES)
    if (random() < 0.5) file.write(event.offset + offset, event.data.subarray(offset, offset + SECTOR_BYTES));
};

/** Returns the bytes of the log that were written but not flushed when the process started `reported`. */
export const countUnflushed = (events: readonly Event[], reported: Event): number => {
  const flushed = listFlushes(events, reported.from).get(WAL) ?? Number.NEGATIVE_INFINITY;
  return events.filter(
    (event) => event.file === WAL && event.kind === "write" && event.from < reported.from && event.to >= flushed,
  ).length;
};
