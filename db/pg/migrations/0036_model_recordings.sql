create table "model_recordings" (
  "id" text primary key,
  "user_id" text not null,
  "sealed_texts" text not null,
  "prompt_bytes" bigint not null,
  "answer_bytes" bigint not null,
  "created_at" bigint not null
);
--> statement-breakpoint
create index "model_recordings_created" on "model_recordings" ("created_at");
--> statement-breakpoint
create index "model_recordings_user" on "model_recordings" ("user_id");
--> statement-breakpoint
alter table "model_spend" add column "recording_id" text not null default '';
