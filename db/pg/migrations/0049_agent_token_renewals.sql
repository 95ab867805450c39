alter table "agents" add column "token_generation" bigint not null default 0;
alter table "agents" add column "token_made_at" bigint;
alter table "workspaces" add column "access_lost_at" bigint;
