alter table "workspaces" add column "autostart_no_user_data" bigint not null default 0;
