alter table "port_shares" add column "shared_by" text;
