create table "model_reservations" (
  "id" text primary key,
  "user_id" text not null,
  "workspace_id" text not null,
  "key_id" text not null,
  "provider_id" text not null,
  "model_config_id" text not null,
  "asked_model" text not null,
  "model" text not null,
  "reserved_micros" bigint not null,
  "created_at" bigint not null
);
--> statement-breakpoint
create index "model_reservations_user" on "model_reservations" ("user_id");
--> statement-breakpoint
alter table "model_spend" add column "workspace_id" text not null default '';
--> statement-breakpoint
alter table "model_spend" add column "key_id" text not null default '';
--> statement-breakpoint
alter table "model_spend" add column "provider_id" text not null default '';
--> statement-breakpoint
alter table "model_spend" add column "asked_model" text not null default '';
--> statement-breakpoint
alter table "model_spend" add column "model" text not null default '';
--> statement-breakpoint
alter table "model_spend" add column "outcome" text not null default 'ok';
--> statement-breakpoint
alter table "model_spend" add column "is_estimated" bigint not null default 0;
--> statement-breakpoint
alter table "model_spend" add column "first_byte_ms" bigint;
--> statement-breakpoint
alter table "model_spend" add column "duration_ms" bigint;
--> statement-breakpoint
alter table "model_spend" add column "provider_request_id" text not null default '';
