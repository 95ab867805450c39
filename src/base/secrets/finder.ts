// Finds many known texts in one pass over another text (Aho-Corasick). Pure.

/** A part of a text: from its first character to the one after its last. */
export type Span = { readonly from: number; readonly to: number };

/** Number of leading characters that select the candidates at a position; every text to find is at least this long. */
export const MIN_FOUND_CHARS = 8;
/** Size of the table that rules out most positions. */
const TABLE_SIZE = 1 << 16;
/** Maximum number of nodes that are kept, to limit memory. */
const MAX_NODES = 250_000;

/** The known texts that share their first `depth` characters: the indexes from `from` to before `to` of the sorted list. */
type Node = {
  readonly from: number;
  readonly to: number;
  readonly depth: number;
  /** Node of the longest proper suffix of these characters with which another known text begins; undefined if no suffix does. */
  readonly suffix: Node | undefined;
  /** Length of the longest known text that is a suffix of these characters, or 0. */
  readonly foundLength: number;
  /** Nodes with one more character, as far as they were created. */
  next: Map<number, Node> | undefined;
};

export class TextFinder {
  /** Sorted, so that texts with the same beginning are neighbors. */
  readonly #texts: readonly string[];
  /** The nodes of `MIN_FOUND_CHARS` characters. Nodes of more characters are created when a search first needs them. */
  readonly #byHead = new Map<string, Node>();
  /** 1 at the hashes of the first characters of known texts. */
  readonly #headHashes = new Uint8Array(TABLE_SIZE);
  #maxLength = 0;
  #nodeCount = 0;
  #stepCount = 0;

  /** Ignores texts with fewer than `MIN_FOUND_CHARS` characters. */
  constructor(texts: Iterable<string>) {
    this.#texts = [...new Set(texts)].filter(({ length }) => length >= MIN_FOUND_CHARS).sort();
    for (let from = 0, to = 0; from < this.#texts.length; from = to) {
      const first = this.#texts[from] as string;
      const head = first.slice(0, MIN_FOUND_CHARS);
      for (to = from; this.#texts[to]?.startsWith(head); to++)
        this.#maxLength = Math.max(this.#maxLength, this.#texts[to]?.length ?? 0);
      const foundLength = first.length === MIN_FOUND_CHARS ? MIN_FOUND_CHARS : 0;
      this.#byHead.set(head, { from, to, depth: MIN_FOUND_CHARS, suffix: undefined, foundLength, next: undefined });
      this.#headHashes[hashHead(first, 0)] = 1;
    }
  }

  /** Number of comparisons so far: proportional to the number of searched characters, whatever the known texts are. */
  get steps(): number {
    return this.#stepCount;
  }

  /** Returns the longest known text that ends at each position, in order of the positions; the spans may overlap. */
  findAll(text: string): Span[] {
    const spans: Span[] = [];
    this.#walk(text, 0, (node, to) => {
      if (node.foundLength > 0) spans.push({ from: to - node.foundLength, to });
    });
    return spans;
  }

  /** Returns the first position from which the text is an incomplete known text; the text's length if no end is incomplete. */
  findOpenStart(text: string): number {
    let node = this.#walk(text, Math.max(0, text.length - this.#maxLength + 1), () => {});
    while (node && !this.#hasContinuation(node)) node = node.suffix;
    if (node) return text.length - node.depth;
    for (let index = Math.max(0, text.length - MIN_FOUND_CHARS + 1); index < text.length; index++) {
      const tail = text.slice(index);
      const candidate = this.#texts[this.#findFirst(0, this.#texts.length, (knownText) => knownText >= tail)];
      if (candidate?.startsWith(tail)) return index;
    }
    return text.length;
  }

  /** Calls `visit` for each position where the characters of a node end, and returns the node at the text's end. */
  #walk(text: string, start: number, visit: (node: Node, to: number) => void): Node | undefined {
    let node: Node | undefined;
    // Without a node: the position where a known text could begin. With a node: the position after the node's characters.
    let index = start;
    for (;;) {
      if (!node) {
        const last = text.length - MIN_FOUND_CHARS;
        while (index <= last && !node) node = this.#findHead(text, index++);
        if (!node) return undefined;
        index += MIN_FOUND_CHARS - 1;
      } else {
        if (index === text.length) return node;
        node = this.#findNode(node, text.charCodeAt(index));
        index++;
        // Another text can begin among the last characters that were compared.
        if (!node) index -= MIN_FOUND_CHARS;
      }
      if (node) visit(node, index);
    }
  }

  #findHead(text: string, index: number): Node | undefined {
    this.#stepCount++;
    return this.#headHashes[hashHead(text, index)] === 1
      ? this.#byHead.get(text.slice(index, index + MIN_FOUND_CHARS))
      : undefined;
  }

  /** Returns the node of the longest suffix of the characters of `node` and one more character. */
  #findNode(node: Node, code: number): Node | undefined {
    for (let suffix: Node | undefined = node; suffix; suffix = suffix.suffix) {
      this.#stepCount++;
      const next = this.#findNext(suffix, code);
      if (next) return next;
    }
    return undefined;
  }

  /** Returns the node with one more character, if a known text continues with it. */
  #findNext(node: Node, code: number): Node | undefined {
    const created = node.next?.get(code);
    const range = created ? undefined : this.#findRange(node, code);
    if (!range) return created;
    // The nodes of the suffixes must be created first. There can be thousands, so this is a loop.
    const missing = [{ node, range }];
    let suffix: Node | undefined;
    for (let shorter = node.suffix; shorter && !suffix; shorter = shorter.suffix) {
      suffix = shorter.next?.get(code);
      const shorterRange = suffix ? undefined : this.#findRange(shorter, code);
      if (shorterRange) missing.push({ node: shorter, range: shorterRange });
    }
    const end = node.depth + 1;
    suffix ??= this.#byHead.get((this.#texts[range.from] as string).slice(end - MIN_FOUND_CHARS, end));
    for (const parent of missing.reverse()) suffix = this.#addNext(parent.node, code, parent.range, suffix);
    return suffix;
  }

  /** Returns which known texts continue with this character. */
  #findRange({ from: first, to: last, depth }: Node, code: number): Span | undefined {
    this.#stepCount++;
    const from = this.#findFirst(
      first,
      last,
      (knownText) => knownText.length > depth && knownText.charCodeAt(depth) >= code,
    );
    if (from === last || this.#texts[from]?.charCodeAt(depth) !== code) return undefined;
    return { from, to: this.#findFirst(from, last, (knownText) => knownText.charCodeAt(depth) > code) };
  }

  #addNext(node: Node, code: number, { from, to }: Span, suffix: Node | undefined): Node {
    const depth = node.depth + 1;
    const foundLength = this.#texts[from]?.length === depth ? depth : (suffix?.foundLength ?? 0);
    const created: Node = { from, to, depth, suffix, foundLength, next: undefined };
    this.#limitNodes();
    node.next ??= new Map();
    node.next.set(code, created);
    return created;
  }

  #limitNodes(): void {
    this.#nodeCount++;
    if (this.#nodeCount < MAX_NODES) return;
    this.#nodeCount = 0;
    for (const head of this.#byHead.values()) head.next = undefined;
  }

  /** Returns whether a known text continues after these characters. */
  #hasContinuation({ from, to, depth }: Node): boolean {
    return to - from > 1 || (this.#texts[from]?.length ?? 0) > depth;
  }

  /** Returns the first index from `from` to before `to` whose text fulfills `isAfter`, as all later texts do; `to` if no text does. */
  #findFirst(from: number, to: number, isAfter: (text: string) => boolean): number {
    let low = from;
    let high = to;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isAfter(this.#texts[middle] as string)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

const hashHead = (text: string, index: number): number => {
  let number = 0;
  for (let i = 0; i < MIN_FOUND_CHARS; i++) number = (Math.imul(number, 31) + text.charCodeAt(index + i)) >>> 0;
  return (number ^ (number >>> 16)) & (TABLE_SIZE - 1);
};
