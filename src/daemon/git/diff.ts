// Limits the size of the output of `git diff`: a file with a large change becomes a stub, and a diff that is too large in total becomes a
// notice (facts/chats 2.11, rule GS-3). Pure.

/** Larger files are not read. */
export const MAX_FILE_BYTES = 2 * 1024 * 1024;
const MAX_FILE_DIFF_BYTES = 256 * 1024;
/** Maximum size of all changes of one repository, as JSON. */
const MAX_DIFF_BYTES = 3 * 1024 * 1024;

const TOO_LARGE_NOTICE = "The changes of this repository are larger than 3 MiB and are not shown.\n";
const FILE_TOO_LARGE_NOTICE = "(the change of this file is larger than 256 KiB and is not shown)\n";

const DIFF_HEADER = "diff --git ";

/** Collects git's output in pieces, and the diffs of single files. */
export class Diff {
  readonly #decoder = new TextDecoder();
  readonly #files: string[] = [];
  #fileHeader: string[] = [];
  #lines: string[] = [];
  #fileSize = 0;
  #size = 0;
  #partialLine = "";

  /** True once the limit is reached: writers may stop. */
  get isFull(): boolean {
    return this.#size > MAX_DIFF_BYTES;
  }

  add(bytes: Uint8Array): void {
    if (this.isFull) return;
    const lines = (this.#partialLine + this.#decoder.decode(bytes, { stream: true })).split("\n");
    this.#partialLine = lines.pop() ?? "";
    for (const line of lines) this.#addLine(line);
    // Limits the length of a line that never ends.
    if (this.#partialLine.length > MAX_FILE_DIFF_BYTES)
      this.#partialLine = this.#partialLine.slice(0, MAX_FILE_DIFF_BYTES + 1);
  }

  /** Adds the diff of one file. */
  addFile(text: string): void {
    this.#close();
    this.#append(text.length > MAX_FILE_DIFF_BYTES ? createStub(text.split("\n", 4)) : text);
  }

  get text(): string {
    if (this.#partialLine !== "") this.#addLine(this.#partialLine);
    this.#partialLine = "";
    this.#close();
    return this.isFull ? TOO_LARGE_NOTICE : this.#files.join("");
  }

  #addLine(line: string): void {
    // Every content line begins with a space, a plus, a minus or a backslash.
    if (line.startsWith(DIFF_HEADER)) this.#close();
    if (this.#fileHeader.length < 4) this.#fileHeader.push(line);
    this.#fileSize += line.length + 1;
    if (this.#fileSize <= MAX_FILE_DIFF_BYTES) this.#lines.push(line, "\n");
    else this.#lines = [];
  }

  #close(): void {
    if (this.#fileHeader.length > 0) {
      this.#append(this.#fileSize > MAX_FILE_DIFF_BYTES ? createStub(this.#fileHeader) : this.#lines.join(""));
    }
    this.#fileHeader = [];
    this.#lines = [];
    this.#fileSize = 0;
  }

  #append(text: string): void {
    if (this.isFull) return;
    this.#size += Buffer.byteLength(JSON.stringify(text));
    this.#files.push(text);
  }
}

/** Returns the lines that name the file, followed by a notice instead of its content. */
const createStub = (fileHeader: readonly string[]): string => {
  const hunkStart = fileHeader.findIndex((line) => line.startsWith("@@"));
  const header = hunkStart < 0 ? fileHeader : fileHeader.slice(0, hunkStart);
  return `${header.map((line) => `${line.slice(0, 4_096)}\n`).join("")}${FILE_TOO_LARGE_NOTICE}`;
};

/** Returns the diff that git would show for a new file. `content` is undefined for a file that is too large to read. */
export const formatNewFileDiff = (
  path: string,
  { mode, content }: { mode: "100644" | "100755" | "120000"; content: Uint8Array | undefined },
): string => {
  const fileHeader = `${DIFF_HEADER}${quoteName(`a/${path}`)} ${quoteName(`b/${path}`)}\nnew file mode ${mode}\n`;
  if (content === undefined) return `${fileHeader}(the file is larger than 2 MiB and is not shown)\n`;
  if (content.byteLength === 0) return fileHeader;
  if (content.subarray(0, 8_000).includes(0))
    return `${fileHeader}Binary files /dev/null and ${quoteName(`b/${path}`)} differ\n`;
  const text = new TextDecoder().decode(content);
  const lines = text.split("\n");
  const endsWithNewline = lines.at(-1) === "";
  if (endsWithNewline) lines.pop();
  const hunk = `@@ -0,0 +1${lines.length === 1 ? "" : `,${lines.length}`} @@\n`;
  const end = endsWithNewline ? "" : "\\ No newline at end of file\n";
  return `${fileHeader}--- /dev/null\n+++ ${quoteName(`b/${path}`)}\n${hunk}${lines.map((line) => `+${line}\n`).join("")}${end}`;
};

/** Quotes a name as git does: only if it contains quotation marks, backslashes or control characters. */
const quoteName = (name: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  /["\\\u0000-\u001f\u007f]/.test(name) ? JSON.stringify(name) : name;
