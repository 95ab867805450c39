// A test table that triggers fill if every node is active: who has written to which shard, and what happened to which job.
import { SQL } from "bun";
import type { ShardEvent } from "./shards-oracle.ts";

const WRITER = "(select pid || ' ' || backend_start from pg_stat_get_activity(pg_backend_pid()))";
/** Tables, and how to find the shard of a new row. Rows without a shard belong to the shard of the request, which is 0. */
const SHARDS_OF: Readonly<Record<string, string>> = {
  api_keys: "0",
  chats: "new.part",
  workspaces: "new.part",
  messages: "(select part from chats where key = new.chat)",
  workspace_builds: "(select part from workspaces where id = new.workspace_id)",
  agent_logs: "(select w.part from workspaces w join agents a on a.workspace_id = w.id where a.key = new.agent)",
};

/** Starts to record handovers and writes in the table `moved`. `tables`: the tables to record, and the shard of a new row of each. */
export const recordShardWriters = async (url: string, tables = SHARDS_OF): Promise<void> => {
  await using sql = new SQL(url, { max: 1 });
  await sql.unsafe(`
    create table moved (n bigserial primary key, kind text not null, part bigint, who text not null, what text not null default '', line text not null default '');
    insert into moved (kind, part, who) select 'given', part, node || ' ' || epoch from parts order by part;
    create function note_given() returns trigger language plpgsql as $$ begin
      insert into moved (kind, part, who) values ('given', new.part, new.node || ' ' || new.epoch);
      return new;
    end $$;
    create trigger note_given after update on parts for each row when (old.node <> new.node or old.epoch <> new.epoch or old.given_at <> new.given_at)
      execute function note_given();
    create function note_job() returns trigger language plpgsql as $$ begin
      insert into moved (kind, part, who, what) select tg_argv[0], w.part, ${WRITER}, 'job ' || new.id
        from workspace_builds b join workspaces w on w.id = b.workspace_id where b.job_id = new.id;
      return new;
    end $$;
    create trigger note_begun after update on jobs for each row
      when (new.started_at is not null and (old.started_at is distinct from new.started_at or old.attempts <> new.attempts))
      execute function note_job('began');
    create trigger note_ended after update on jobs for each row when (old.completed_at is null and new.completed_at is not null)
      execute function note_job('ended');
    create function note_logged() returns trigger language plpgsql as $$ begin
      insert into moved (kind, part, who, what, line) select 'logged', w.part, ${WRITER}, 'job ' || j.id, new.stage || ': ' || new.output
        from jobs j join workspace_builds b on b.job_id = j.id join workspaces w on w.id = b.workspace_id where j.key = new.job;
      return new;
    end $$;
    create trigger note_logged after insert on job_logs for each row execute function note_logged();`);
  for (const [table, part] of Object.entries(tables))
    await sql.unsafe(`
      create function note_${table}() returns trigger language plpgsql as $$ begin
        insert into moved (kind, part, who, what) select 'wrote', ${part}, ${WRITER}, '${table}';
        return new;
      end $$;
      create trigger note_${table} after insert on ${table} for each row execute function note_${table}();`);
};

/** Returns the table's events in the order of writing. */
export const loadShardEvents = async (url: string): Promise<ShardEvent[]> => {
  await using sql = new SQL(url, { max: 1 });
  const rows = (await sql.unsafe("select kind, part::int as part, who, what, line from moved order by n")) as {
    kind: ShardEvent["kind"];
    part: number;
    who: string;
    what: string;
    line: string;
  }[];
  return rows.map(({ kind, part, who, what, line }) =>
    kind === "given" ? { kind, part, node: who } : { kind, part, writer: who, what, line },
  );
};
