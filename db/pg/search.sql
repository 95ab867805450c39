-- The search index: words of messages and titles under the same keys as in SQLite (db/engine/search.sql).
create table message_search (rowid bigint primary key, words tsvector not null);
--> statement-breakpoint
create index message_search_words on message_search using gin (words) with (fastupdate = off);
--> statement-breakpoint
create table title_search (rowid bigint primary key, words tsvector not null);
--> statement-breakpoint
create index title_search_words on title_search using gin (words) with (fastupdate = off);
