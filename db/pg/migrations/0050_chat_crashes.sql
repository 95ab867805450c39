alter table "chats" add column "crashes" text;
