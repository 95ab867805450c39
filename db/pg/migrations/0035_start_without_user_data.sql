alter table "workspace_builds" add column "no_user_data" bigint not null default 0;
