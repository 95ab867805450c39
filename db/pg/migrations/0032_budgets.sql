create table "budget_periods" (
  "budget_id" text not null,
  "begins_at" bigint not null,
  "ends_at" bigint not null,
  "unit" text not null,
  "spent" bigint not null,
  "extra" bigint not null default 0,
  "warned_at" bigint,
  primary key ("budget_id", "begins_at", "ends_at")
);
--> statement-breakpoint
create index "budget_periods_end" on "budget_periods" ("ends_at");
--> statement-breakpoint
create table "budgets" (
  "id" text primary key,
  "scope" text not null,
  "scope_id" text not null,
  "period" text not null,
  "unit" text not null,
  "amount" bigint not null,
  "created_at" bigint not null,
  "updated_at" bigint not null
);
--> statement-breakpoint
create unique index "budgets_scope" on "budgets" ("scope", "scope_id", "period", "unit");
--> statement-breakpoint
alter table "chats" add column "budget_pause" text;
--> statement-breakpoint
create index "chats_budget_pause" on "chats" ("key") where "chats"."budget_pause" is not null;
--> statement-breakpoint
alter table "model_reservations" add column "reserved_tokens" bigint not null default 0;
--> statement-breakpoint
alter table "model_reservations" add column "alive_until" bigint not null default 0;
--> statement-breakpoint
alter table "model_reservations" add column "kind" text not null default 'gateway';
--> statement-breakpoint
alter table "model_reservations" add column "chat_id" text not null default '';
--> statement-breakpoint
alter table "model_reservations" add column "root_chat_id" text not null default '';
--> statement-breakpoint
alter table "model_reservations" add column "organization_id" text not null default '';
--> statement-breakpoint
alter table "model_reservations" add column "template_id" text not null default '';
--> statement-breakpoint
alter table "model_spend" add column "organization_id" text not null default '';
--> statement-breakpoint
alter table "model_spend" add column "template_id" text not null default '';
