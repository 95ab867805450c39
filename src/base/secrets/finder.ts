// Finds many known texts in one pass over another text (Aho-Corasick). Pure.

/** A part of a text: from its first character to the one after its last. */
export type Span = { readonly from: number; readonly to: number };

/** Number of leading characters that select the candidates at a position; every text to find is at least this long. */
export const MIN_FOUND_CHARS = 8;
/** Size of the table that rules out most positions. */
const TABLE = 1 << 16;
/** Maximum number of nodes that are kept, to limit memory. */
const MAX_NODES = 250_000;

/** The known texts that share their first `depth` characters: those from `from` to before `to` of the sorted list. */
type Node = {
  readonly from: number;
  readonly to: number;
  readonly depth: number;
  /** Node of the longest end of these characters with which another known text begins, if there is one. */
  readonly shorter: Node | undefined;
  /** Length of the longest known text that these characters end with, or 0. */
  readonly found: number;
  /** Nodes of one more character that were needed so far. */
  next: Map<number, Node> | undefined;
};

export class TextFinder {
  /** Sorted, so that texts with the same beginning are neighbors. */
  readonly #texts: readonly string[];
  /** The nodes of `MIN_FOUND_CHARS` characters. Longer ones are created when a text that is searched first leads to them. */
  readonly #byHead = new Map<string, Node>();
  /** 1 if a text begins with characters of this hash. */
  readonly #heads = new Uint8Array(TABLE);
  #longest = 0;
  #nodes = 0;
  #steps = 0;

  /** Shorter texts than `MIN_FOUND_CHARS` are not found. */
  constructor(texts: Iterable<string>) {
    this.#texts = [...new Set(texts)].filter(({ length }) => length >= MIN_FOUND_CHARS).sort();
    for (let from = 0, to = 0; from < this.#texts.length; from = to) {
      const first = this.#texts[from] as string;
      const head = first.slice(0, MIN_FOUND_CHARS);
      for (to = from; this.#texts[to]?.startsWith(head); to++)
        this.#longest = Math.max(this.#longest, this.#texts[to]?.length ?? 0);
      const found = first.length === MIN_FOUND_CHARS ? MIN_FOUND_CHARS : 0;
      this.#byHead.set(head, { from, to, depth: MIN_FOUND_CHARS, shorter: undefined, found, next: undefined });
      this.#heads[hashHead(first, 0)] = 1;
    }
  }

  /** Number of comparisons so far: grows in proportion to the searched characters, whatever the known texts are. */
  get steps(): number {
    return this.#steps;
  }

  /** Returns for each position the longest known text that ends there, in order of their ends; they may overlap. */
  findAll(text: string): Span[] {
    const found: Span[] = [];
    this.#walk(text, 0, (node, to) => {
      if (node.found > 0) found.push({ from: to - node.found, to });
    });
    return found;
  }

  /** Returns the first position from which the rest of the text is only the beginning of a known text; the text's length if none is. */
  findOpenStart(text: string): number {
    let node = this.#walk(text, Math.max(0, text.length - this.#longest + 1), () => {});
    while (node && !this.#isOpen(node)) node = node.shorter;
    if (node) return text.length - node.depth;
    for (let at = Math.max(0, text.length - MIN_FOUND_CHARS + 1); at < text.length; at++) {
      const tail = text.slice(at);
      const known = this.#texts[this.#findFirst(0, this.#texts.length, (one) => one >= tail)];
      if (known?.startsWith(tail)) return at;
    }
    return text.length;
  }

  /** Calls `see` for each position that known characters end at, and returns the node of the text's end. */
  #walk(text: string, start: number, see: (node: Node, to: number) => void): Node | undefined {
    let node: Node | undefined;
    // While there is no node, the position at which known characters could begin; then the one after the characters of the node.
    let at = start;
    for (;;) {
      if (!node) {
        const last = text.length - MIN_FOUND_CHARS;
        while (at <= last && !node) node = this.#findHead(text, at++);
        if (!node) return undefined;
        at += MIN_FOUND_CHARS - 1;
      } else {
        if (at === text.length) return node;
        node = this.#follow(node, text.charCodeAt(at));
        at++;
        // The last characters, of which some have been compared, can be the first ones of another text.
        if (!node) at -= MIN_FOUND_CHARS;
      }
      if (node) see(node, at);
    }
  }

  #findHead(text: string, at: number): Node | undefined {
    this.#steps++;
    return this.#heads[hashHead(text, at)] === 1 ? this.#byHead.get(text.slice(at, at + MIN_FOUND_CHARS)) : undefined;
  }

  /** Returns the node of the longest known characters that end with those of `node` and one more. */
  #follow(node: Node, code: number): Node | undefined {
    for (let one: Node | undefined = node; one; one = one.shorter) {
      this.#steps++;
      const next = this.#findNext(one, code);
      if (next) return next;
    }
    return undefined;
  }

  /** Returns the node of one more character, if a known text continues with it. */
  #findNext(node: Node, code: number): Node | undefined {
    const created = node.next?.get(code);
    const range = created ? undefined : this.#narrow(node, code);
    if (!range) return created;
    // The nodes of the shorter ends come first. There can be thousands, so this is a loop.
    const missing = [{ node, range }];
    let shorter: Node | undefined;
    for (let one = node.shorter; one && !shorter; one = one.shorter) {
      shorter = one.next?.get(code);
      const inner = shorter ? undefined : this.#narrow(one, code);
      if (inner) missing.push({ node: one, range: inner });
    }
    const end = node.depth + 1;
    shorter ??= this.#byHead.get((this.#texts[range.from] as string).slice(end - MIN_FOUND_CHARS, end));
    for (const one of missing.reverse()) shorter = this.#addNext(one.node, code, one.range, shorter);
    return shorter;
  }

  /** Returns which known texts continue with this character. */
  #narrow({ from: first, to: last, depth }: Node, code: number): Span | undefined {
    this.#steps++;
    const from = this.#findFirst(first, last, (one) => one.length > depth && one.charCodeAt(depth) >= code);
    if (from === last || this.#texts[from]?.charCodeAt(depth) !== code) return undefined;
    return { from, to: this.#findFirst(from, last, (one) => one.charCodeAt(depth) > code) };
  }

  #addNext(node: Node, code: number, { from, to }: Span, shorter: Node | undefined): Node {
    const depth = node.depth + 1;
    const found = this.#texts[from]?.length === depth ? depth : (shorter?.found ?? 0);
    const created: Node = { from, to, depth, shorter, found, next: undefined };
    this.#limitNodes();
    node.next ??= new Map();
    node.next.set(code, created);
    return created;
  }

  #limitNodes(): void {
    this.#nodes++;
    if (this.#nodes < MAX_NODES) return;
    this.#nodes = 0;
    for (const head of this.#byHead.values()) head.next = undefined;
  }

  /** Returns whether a known text is longer than these characters. */
  #isOpen({ from, to, depth }: Node): boolean {
    return to - from > 1 || (this.#texts[from]?.length ?? 0) > depth;
  }

  /** Returns the first index from `from` to before `to` of whose text `isAfter` is true, and of all texts after it, or `to`. */
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

const hashHead = (text: string, at: number): number => {
  let number = 0;
  for (let i = 0; i < MIN_FOUND_CHARS; i++) number = (Math.imul(number, 31) + text.charCodeAt(at + i)) >>> 0;
  return (number ^ (number >>> 16)) & (TABLE - 1);
};
