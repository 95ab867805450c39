-- What SQLite has and PostgreSQL lacks, as functions, so that the statements of db/ run as they are. Part of every new database, and
-- replaced at every start. JSON is kept as text: `json` and not `jsonb` reads it, which accepts \u0000.
-- Not strict: then it is part of the statement's own plan, and takes a third of the time.
create or replace function json_each(j text, out key text, out value text) returns setof record language sql immutable parallel safe rows 20 as $$
  select (i - 1)::text, v from json_array_elements_text(case when ltrim(j) like '[%' then j::json end) with ordinality as a(v, i)
  union all select e.key, e.value from json_each_text(case when ltrim(j) like '[%' then null else j::json end) e $$;
--> statement-breakpoint
create or replace function json_array_length(j text) returns bigint language sql immutable strict parallel safe as $$ select json_array_length(j::json)::bigint $$;
--> statement-breakpoint
create or replace function json_extract(j text, path text) returns text language sql immutable strict parallel safe as $$ select jsonb_path_query_first(j::jsonb, path::jsonpath) #>> '{}' $$;
--> statement-breakpoint
create or replace function instr(text, text) returns bigint language sql immutable strict parallel safe as $$ select strpos($1, $2)::bigint $$;
--> statement-breakpoint
create or replace function max(a bigint, b bigint) returns bigint language sql immutable parallel safe as $$ select case when a is null or b is null then null when a > b then a else b end $$;
--> statement-breakpoint
create or replace function min(a bigint, b bigint) returns bigint language sql immutable parallel safe as $$ select case when a is null or b is null then null when a < b then a else b end $$;
--> statement-breakpoint
create or replace function text_json_field(text, text) returns text language sql immutable parallel safe as $$
  select case when left($2, 1) = '$' then $1::json #>> string_to_array(ltrim(regexp_replace(substr($2, 2), '\[(\d+)\]', '.\1', 'g'), '.'), '.')
    else $1::json ->> $2 end $$;
--> statement-breakpoint
do $$ begin create operator ->> (leftarg = text, rightarg = text, function = text_json_field); exception when duplicate_function then null; end $$;
--> statement-breakpoint
-- What is called for each row of a group is no function of SQL: those take several times as long.
create or replace function join_text(acc text, v text) returns text language plpgsql immutable as $$ begin return case when v is null then acc when acc is null then v else acc || ',' || v end; end $$;
--> statement-breakpoint
create or replace aggregate group_concat(text) (sfunc = join_text, stype = text);
--> statement-breakpoint
create or replace function total_add(acc double precision, v bigint) returns double precision language plpgsql immutable as $$ begin return acc + coalesce(v, 0); end $$;
--> statement-breakpoint
create or replace aggregate whole_sum(bigint) (sfunc = int8pl, stype = bigint);
--> statement-breakpoint
-- Of its formats those that are asked for; the time is in seconds since 1970.
create or replace function strftime(format text, at bigint, unit text) returns text language sql immutable strict parallel safe as $$
  select to_char(to_timestamp(at) at time zone 'utc', replace(replace(replace(format, '%Y', 'YYYY'), '%m', 'MM'), '%d', 'DD')) $$;
--> statement-breakpoint
create or replace aggregate total(bigint) (sfunc = total_add, stype = double precision, initcond = '0');
--> statement-breakpoint
create or replace function bigint_is_text(bigint, text) returns boolean language sql immutable parallel safe as $$ select $1 = $2::bigint $$;
--> statement-breakpoint
do $$ begin create operator = (leftarg = bigint, rightarg = text, function = bigint_is_text); exception when duplicate_function then null; end $$;
--> statement-breakpoint
create or replace function json_push(acc jsonb, v text) returns jsonb language sql immutable as $$ select acc || to_jsonb(v) $$;
--> statement-breakpoint
create or replace function json_text(j jsonb) returns text language sql immutable as $$ select j::text $$;
--> statement-breakpoint
create or replace aggregate json_group_array(text) (sfunc = json_push, stype = jsonb, initcond = '[]', finalfunc = json_text);
--> statement-breakpoint
create or replace function json_push_json(acc jsonb, v json) returns jsonb language sql immutable as $$ select acc || jsonb_build_array(v) $$;
--> statement-breakpoint
create or replace aggregate json_group_array(json) (sfunc = json_push_json, stype = jsonb, initcond = '[]', finalfunc = json_text);
--> statement-breakpoint
-- `+column` keeps SQLite's planner from an index; here it means nothing.
create or replace function same_text(text) returns text language sql immutable parallel safe as $$ select $1 $$;
--> statement-breakpoint
do $$ begin create operator + (rightarg = text, function = same_text); exception when duplicate_function then null; end $$;
--> statement-breakpoint
create or replace function fts_query(q text) returns tsquery language sql immutable strict parallel safe as $$
  select to_tsquery('simple', replace(replace(replace(replace(q, '"', ''''), ' AND ', ' & '), ' NOT ', ' & !'), ' OR ', ' | ')) $$;
--> statement-breakpoint
-- A guard that did not touch its rows is an error of the server, so that COMMIT can be sent before the count is known.
create or replace function expect_rows(have bigint, want bigint) returns void language plpgsql as $$
  begin if have <> want then raise exception 'stale' using errcode = 'SW001'; end if; end $$;
--> statement-breakpoint
-- Every group of commits asks whether its node is still the owner. FOR SHARE, because FOR KEY SHARE would not wait for a takeover.
create or replace function own_epoch(e bigint) returns void language plpgsql as $$
  begin perform 1 from epoch where id = 1 and value = e for share; if not found then raise exception 'fenced' using errcode = 'SW002'; end if; end $$;
--> statement-breakpoint
-- The same for the node's own epoch and for the parts that the group's batches are of.
create or replace function own_parts(n text, e bigint, wanted bigint[]) returns void language plpgsql as $$
  declare lost text; begin
    perform 1 from fences where node = n and epoch = e for share;
    if not found then raise exception 'fenced' using errcode = 'SW002'; end if;
    if wanted = '{}' then return; end if;
    with held as materialized (select part from parts where part = any(wanted) and node = n and epoch = e order by part for share)
      select string_agg(one::text, ',') into lost from unnest(wanted) as one where one not in (select part from held);
    if lost is not null then raise exception 'another node has these parts' using errcode = 'SW003', detail = lost; end if;
  end $$;
