alter table "agents" add column "resources" text;
