// Repairs the first page of a damaged database: without its header SQLite cannot open the file, and without the tree behind it no table is
// found. Both can be recreated: the header from a new database, and the tree from the pages that list the tables.
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";

const PAGE_BYTES = 4096;
const HEADER_BYTES = 100;
const MAGIC = "SQLite format 3\0";
/** Kinds of pages, and the offset of the first page's own kind. */
const INTERIOR_PAGE = 0x05;
const LEAF_PAGE = 0x0d;
/** Columns of `sqlite_schema`. */
const SCHEMA_COLUMNS = 5;
/** Offsets of a leaf's number of cells, and of their addresses. */
const [COUNT_AT, CELLS_AT] = [3, 8];
const KINDS: ReadonlySet<string> = new Set(["table", "index", "trigger", "view"]);

export type RepairResult = "nothing" | "header" | "header and list of tables";

/** Repairs the first page of `file`, with the header of `model`, an intact database of the same program. */
export const repairFirstPage = (file: string, model: string): RepairResult => {
  const fd = openSync(file, "r+");
  try {
    const pages = Math.ceil(fstatSync(fd).size / PAGE_BYTES);
    const first = readPage(fd, 1);
    const hasHeader = first.toString("latin1", 0, 16) === MAGIC && first.readUInt16BE(16) === PAGE_BYTES;
    const hasTree =
      first[HEADER_BYTES] === INTERIOR_PAGE
        ? findChildren(first).every((page) => page <= pages && findSchemaRows(readPage(fd, page)) !== undefined)
        : first[HEADER_BYTES] === LEAF_PAGE && first.readUInt16BE(103) > 0;
    if (hasHeader && hasTree) {
      // SQLite reads nothing from a file that is shorter than its header says.
      ftruncateSync(fd, Math.max(pages, first.readUInt32BE(28)) * PAGE_BYTES);
      return "nothing";
    }
    const created = Buffer.alloc(PAGE_BYTES);
    const modelFd = openSync(model, "r");
    readPage(modelFd, 1).copy(created, 0, 0, HEADER_BYTES);
    closeSync(modelFd);
    created.writeUInt32BE(pages, 28);
    // Sets no free pages: they are unknown, and nothing is written here anyway.
    created.writeUInt32BE(0, 32);
    created.writeUInt32BE(0, 36);
    if (hasTree) first.copy(created, HEADER_BYTES, HEADER_BYTES);
    else
      writeTree(
        created,
        findSchemaLeaves(fd, pages).flatMap((leaf) => keepOnlyTables(fd, leaf)),
      );
    writeSync(fd, created, 0, PAGE_BYTES, 0);
    return hasTree ? "header" : "header and list of tables";
  } finally {
    closeSync(fd);
  }
};

/**
 * Returns the pages below the first one if it is an inner page. A damaged one among them prevents SQLite from reading the list of tables.
 */
const findChildren = (first: Buffer): number[] => {
  const cells = Math.min(first.readUInt16BE(HEADER_BYTES + 3), (PAGE_BYTES - HEADER_BYTES - 12) / 2);
  const children = [first.readUInt32BE(HEADER_BYTES + 8)];
  for (let i = 0; i < cells; i++) {
    const at = first.readUInt16BE(HEADER_BYTES + 12 + 2 * i);
    children.push(at + 4 <= PAGE_BYTES ? first.readUInt32BE(at) : Number.POSITIVE_INFINITY);
  }
  return children;
};

type SchemaLeaf = { readonly page: number; readonly first: number; readonly last: number };

/** Returns the pages that list tables, in the order of their rows. Skips an older copy of a page that overlaps a newer one. */
const findSchemaLeaves = (fd: number, pages: number): SchemaLeaf[] => {
  const found: SchemaLeaf[] = [];
  for (let page = 2; page <= pages; page++) {
    const rows = findSchemaRows(readPage(fd, page));
    const [first, last] = [rows?.[0], rows?.at(-1)];
    if (first !== undefined && last !== undefined) found.push({ page, first: first.rowid, last: last.rowid });
  }
  found.sort((a, b) => a.first - b.first || b.last - a.last);
  return found.filter(({ first }, i) => found.slice(0, i).every((before) => before.last < first));
};

/**
 * Removes indexes, triggers and views from a leaf, and returns it, or nothing if no table remains. SQLite rejects the whole list if an
 * index names a missing table, and rows can be read without indexes.
 */
const keepOnlyTables = (fd: number, leaf: SchemaLeaf): SchemaLeaf[] => {
  const page = readPage(fd, leaf.page);
  const tables = (findSchemaRows(page) ?? []).filter(({ kind }) => kind === "table");
  const [first, last] = [tables[0], tables.at(-1)];
  if (first === undefined || last === undefined) return [];
  page.writeUInt16BE(tables.length, COUNT_AT);
  for (const [i, { at }] of tables.entries()) page.writeUInt16BE(at, CELLS_AT + 2 * i);
  writeSync(fd, page, 0, PAGE_BYTES, (leaf.page - 1) * PAGE_BYTES);
  return [{ page: leaf.page, first: first.rowid, last: last.rowid }];
};

type SchemaRow = { readonly rowid: number; readonly kind: string; readonly at: number };

/** Returns the rows of a leaf if all of its cells are rows of `sqlite_schema`; undefined for any other page. */
const findSchemaRows = (page: Buffer): SchemaRow[] | undefined => {
  if (page[0] !== LEAF_PAGE) return undefined;
  const cells = page.readUInt16BE(COUNT_AT);
  if (cells === 0 || CELLS_AT + 2 * cells > PAGE_BYTES) return undefined;
  const rows: SchemaRow[] = [];
  for (let i = 0; i < cells; i++) {
    const row = readSchemaRow(page, page.readUInt16BE(CELLS_AT + 2 * i));
    if (row === undefined) return undefined;
    rows.push(row);
  }
  return rows;
};

const readSchemaRow = (page: Buffer, at: number): SchemaRow | undefined => {
  const read = new Varints(page, at);
  read.next();
  const rowid = read.next();
  const headerAt = read.at;
  const headerBytes = read.next();
  const types = Array.from({ length: SCHEMA_COLUMNS }, () => read.next());
  if (read.at > PAGE_BYTES || read.at - headerAt !== headerBytes) return undefined;
  const [type = 0] = types;
  const length = type >= 13 && type % 2 === 1 ? (type - 13) / 2 : 0;
  const kind = page.toString("latin1", read.at, read.at + length);
  return KINDS.has(kind) ? { rowid, kind, at } : undefined;
};

/** Reads SQLite's variable-length integers with seven bits per byte, used for lengths and row numbers. */
class Varints {
  readonly #page: Buffer;
  at: number;

  constructor(page: Buffer, at: number) {
    this.#page = page;
    this.at = at;
  }

  next(): number {
    let value = 0;
    for (let i = 0; i < 8; i++) {
      const byte = this.#page[this.at++] ?? 0;
      value = value * 128 + (byte & 0x7f);
      if (byte < 0x80) return value;
    }
    return value * 256 + (this.#page[this.at++] ?? 0);
  }
}

/** Writes an inner page above the leaves: each with its last row, the last leaf as the rightmost child. */
const writeTree = (page: Buffer, leaves: readonly SchemaLeaf[]): void => {
  const inner = leaves.slice(0, -1);
  let content = PAGE_BYTES;
  page[HEADER_BYTES] = INTERIOR_PAGE;
  page.writeUInt16BE(inner.length, HEADER_BYTES + 3);
  for (const [i, { page: child, last }] of inner.entries()) {
    const cell = Buffer.concat([Buffer.alloc(4), varint(last)]);
    cell.writeUInt32BE(child, 0);
    content -= cell.length;
    cell.copy(page, content);
    page.writeUInt16BE(content, HEADER_BYTES + 12 + 2 * i);
  }
  page.writeUInt16BE(content, HEADER_BYTES + 5);
  page.writeUInt32BE(leaves.at(-1)?.page ?? 0, HEADER_BYTES + 8);
};

const varint = (value: number): Buffer => {
  const bytes = [value & 0x7f];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift((rest & 0x7f) | 0x80);
  return Buffer.from(bytes);
};

const readPage = (fd: number, page: number): Buffer => {
  const bytes = Buffer.alloc(PAGE_BYTES);
  readSync(fd, bytes, 0, PAGE_BYTES, (page - 1) * PAGE_BYTES);
  return bytes;
};
