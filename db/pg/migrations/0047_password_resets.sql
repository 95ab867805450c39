alter table "users" add column "password_reset_at" bigint;
