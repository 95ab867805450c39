alter table "webpush_subscriptions" add column "key_id" text;
--> statement-breakpoint
alter table "webpush_subscriptions" add foreign key ("key_id") references "api_keys" ("id") on delete cascade deferrable;
--> statement-breakpoint
create index "webpush_subscriptions_key" on "webpush_subscriptions" ("key_id");
--> statement-breakpoint
delete from "webpush_subscriptions";
