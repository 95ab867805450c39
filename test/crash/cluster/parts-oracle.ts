// Where every node is active: who has written for which part, in the order of writing, and whether it had the part then. A table of the test's own
// says so, which triggers fill; what it means is judged by a pure function.
import { SQL } from "bun";

/**
 * `given`: a part is `node`'s from here on, a node's name with its epoch. `wrote`: something of the part was written. `began`: a job was begun, which
 * `what` names. `writer` is a connection, which is one node's for as long as it lives.
 */
export type PartEvent =
  | { readonly kind: "given"; readonly part: number; readonly node: string }
  | { readonly kind: "wrote" | "began"; readonly part: number; readonly writer: string; readonly what: string };

/**
 * What is wrong, in words; empty: nothing. Whose a connection is follows from the parts that it writes: with a second owner it has written for a part
 * that was given away. Moving a part waits for groups that hold it, so the order of the table is that of commits.
 */
export const judgeParts = (events: readonly PartEvent[]): string[] => {
  const owners = new Map<number, string>();
  const writers = new Map<string, string>();
  /** How often each part was given: who had it before and gets it back begins anew what is open. */
  const givings = new Map<number, number>();
  /** By whom a job was begun last, and in which giving. */
  const begun = new Map<string, string>();
  const wrong: string[] = [];
  for (const event of events) {
    const { part } = event;
    if (event.kind === "given") {
      owners.set(part, event.node);
      givings.set(part, (givings.get(part) ?? 0) + 1);
      continue;
    }
    const { writer, what } = event;
    const owner = owners.get(part) ?? "nobody";
    const node = writers.get(writer) ?? owner;
    writers.set(writer, node);
    if (node !== owner || owner === "nobody")
      wrong.push(`${what} of part ${part} was written by ${node} while ${owner} had it`);
    if (event.kind === "wrote") continue;
    const had = `${owner}, giving ${givings.get(part) ?? 0}`;
    if (begun.get(what) === had) wrong.push(`${what} of part ${part} was begun twice by ${owner}`);
    begun.set(what, had);
  }
  return wrong;
};

const WRITER = "(select pid || ' ' || backend_start from pg_stat_get_activity(pg_backend_pid()))";
/** Tables, and the part of a new row of each. What belongs to no part is the first node's, which has part 0. */
const PARTS_OF: Readonly<Record<string, string>> = {
  api_keys: "0",
  chats: "new.part",
  workspaces: "new.part",
  messages: "(select part from chats where key = new.chat)",
  workspace_builds: "(select part from workspaces where id = new.workspace_id)",
  agent_logs: "(select w.part from workspaces w join agents a on a.workspace_id = w.id where a.key = new.agent)",
};

/** From now on the table `moved` says what was given and written. */
export const notePartWriters = async (url: string): Promise<void> => {
  await using sql = new SQL(url, { max: 1 });
  await sql.unsafe(`
    create table moved (n bigserial primary key, kind text not null, part bigint, who text not null, what text not null default '');
    insert into moved (kind, part, who) select 'given', part, node || ' ' || epoch from parts order by part;
    create function note_given() returns trigger language plpgsql as $$ begin
      insert into moved (kind, part, who) values ('given', new.part, new.node || ' ' || new.epoch);
      return new;
    end $$;
    create trigger note_given after update on parts for each row when (old.node <> new.node or old.epoch <> new.epoch)
      execute function note_given();
    create function note_begun() returns trigger language plpgsql as $$ begin
      insert into moved (kind, part, who, what) select 'began', w.part, ${WRITER}, 'job ' || new.id
        from workspace_builds b join workspaces w on w.id = b.workspace_id where b.job_id = new.id;
      return new;
    end $$;
    create trigger note_begun after update on jobs for each row
      when (new.started_at is not null and (old.started_at is distinct from new.started_at or old.attempts <> new.attempts))
      execute function note_begun();`);
  for (const [table, part] of Object.entries(PARTS_OF))
    await sql.unsafe(`
      create function note_${table}() returns trigger language plpgsql as $$ begin
        insert into moved (kind, part, who, what) select 'wrote', ${part}, ${WRITER}, '${table}';
        return new;
      end $$;
      create trigger note_${table} after insert on ${table} for each row execute function note_${table}();`);
};

/** What the table says, in the order of writing. */
export const partEvents = async (url: string): Promise<PartEvent[]> => {
  await using sql = new SQL(url, { max: 1 });
  const rows = (await sql.unsafe("select kind, part::int as part, who, what from moved order by n")) as {
    kind: PartEvent["kind"];
    part: number;
    who: string;
    what: string;
  }[];
  return rows.map(({ kind, part, who, what }) =>
    kind === "given" ? { kind, part, node: who } : { kind, part, writer: who, what },
  );
};
