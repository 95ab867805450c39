// Who has which parts, as the database says at one moment.
import type { ReservedSQL } from "bun";
import { type OtherNode, PARTS } from "#base/parts.ts";
import type { Teller } from "../told/tellers.ts";

export type Owner = OtherNode & {
  readonly epoch: number;
  /** Milliseconds until the end of its lease, by the database's clock. */
  readonly ends_ms: number;
  readonly lives: boolean;
  /** What it has told the others, as it has said with its last renewal. */
  readonly teller: Teller;
  readonly parts: readonly number[];
};

export type PartsTable = {
  /** Every node whose parts have not been taken from it, also one whose lease has ended. */
  readonly owners: readonly Owner[];
  /** Someone has to take what a node had that lives no more, or what nobody has. */
  readonly isOrphaned: boolean;
};

export type OwnerRow = {
  readonly id: string;
  readonly address: string;
  readonly epoch: string;
  readonly sign: string;
  readonly ends_ms: number;
  readonly told: string;
  readonly parts: string;
};

/** One small question for all nodes. */
export const OWNERS = `select f.node as id, coalesce(n.address, f.node) as address, f.epoch, l.expires_at::text as sign, l.told,
    (extract(epoch from l.expires_at - clock_timestamp()) * 1000)::float8 as ends_ms,
    coalesce(string_agg(p.part::text, ',' order by p.part), '') as parts
  from leases l join fences f on f.node = l.node left join nodes n on n.id = l.node
    left join parts p on p.node = f.node and p.epoch = f.epoch
  group by f.node, n.address, f.epoch, l.expires_at, l.told order by f.node`;

export const lookAtParts = async (sql: ReservedSQL): Promise<PartsTable> => toPartsTable(await sql.unsafe(OWNERS));

export const toPartsTable = (rows: readonly OwnerRow[]): PartsTable => {
  const owners = rows.map(({ id, address, ends_ms, parts, ...row }) => {
    const epoch = Number(row.epoch);
    const teller = { epoch, told: Number(row.told), sign: row.sign };
    return { id, address, epoch, ends_ms, lives: ends_ms > 0, teller, parts: parseNumbers(parts) };
  });
  const had = owners.reduce((sum, { parts }) => sum + parts.length, 0);
  return { owners, isOrphaned: had < PARTS || owners.some(({ lives }) => !lives) };
};

const parseNumbers = (parts: string): number[] => (parts === "" ? [] : parts.split(",").map(Number));

/** Some node that lives has two parts more than another. */
export const isUneven = ({ owners }: PartsTable): boolean => {
  const counts = owners.filter(({ lives }) => lives).map(({ parts }) => parts.length);
  return counts.length > 1 && Math.max(...counts) - Math.min(...counts) > 1;
};

/** Milliseconds until the first of these leases has ended, unless it is renewed. */
export const nextEnd = ({ owners }: PartsTable): number =>
  Math.min(...owners.map(({ ends_ms }) => Math.max(1, ends_ms)));
