alter table "api_keys" add column "created_by" text;
create index "api_keys_created_by" on "api_keys" ("created_by") where "api_keys"."created_by" is not null;
