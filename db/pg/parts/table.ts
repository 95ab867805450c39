// Who has which parts, as the database says at one moment.
import type { ReservedSQL } from "bun";
import { type OtherNode, PARTS } from "#base/parts.ts";

export type Owner = OtherNode & {
  readonly epoch: number;
  /** By the database's clock. */
  readonly lives: boolean;
  readonly parts: readonly number[];
};

export type PartsTable = {
  /** Every node whose parts have not been taken from it, also one whose lease has ended. */
  readonly owners: readonly Owner[];
  /** Somebody has to take what a node had that lives no more, or what nobody has. */
  readonly isOrphaned: boolean;
};

type Row = {
  readonly id: string;
  readonly address: string;
  readonly epoch: string;
  readonly lives: boolean;
  readonly parts: string;
};

/** One small question for all nodes: asked several times a second. */
export const lookAtParts = async (sql: ReservedSQL): Promise<PartsTable> => {
  const rows: Row[] = await sql.unsafe(
    `select f.node as id, coalesce(n.address, f.node) as address, f.epoch, l.expires_at > clock_timestamp() as lives,
       coalesce(string_agg(p.part::text, ',' order by p.part), '') as parts
     from leases l join fences f on f.node = l.node left join nodes n on n.id = l.node
       left join parts p on p.node = f.node and p.epoch = f.epoch
     group by f.node, n.address, f.epoch, l.expires_at order by f.node`,
  );
  const owners = rows.map(({ parts, epoch, ...row }) => ({
    ...row,
    epoch: Number(epoch),
    parts: parts === "" ? [] : parts.split(",").map(Number),
  }));
  const had = owners.reduce((sum, { parts }) => sum + parts.length, 0);
  return { owners, isOrphaned: had < PARTS || owners.some(({ lives }) => !lives) };
};

/** Some node that lives has two parts more than another. */
export const isUneven = ({ owners }: PartsTable): boolean => {
  const counts = owners.filter(({ lives }) => lives).map(({ parts }) => parts.length);
  return counts.length > 1 && Math.max(...counts) - Math.min(...counts) > 1;
};
