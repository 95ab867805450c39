-- How far an agent is from the relays, with its sign of life; on SQLite 0025.
alter table "agents" add column if not exists "latency" text not null default '{}';
