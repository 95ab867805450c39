-- The index of what was said in chats, and that of their titles. Drizzle knows no virtual tables, so this step is written by hand; it
-- is not in migrations/, where a step is made anew from the tables of schema/. Both keep words only, no text (contentless).
-- rowid: the chat's key in the upper 31 bits, the message's number in the lower 32, so that the matches of a chat lie together.
create virtual table message_search using fts5(words, content = '', contentless_delete = 1, tokenize = 'ascii');
--> statement-breakpoint
-- rowid: the chat's key for its title; the negative key for number and title of its pull request.
create virtual table title_search using fts5(words, content = '', contentless_delete = 1, tokenize = 'ascii');
--> statement-breakpoint
-- Merging happens in slices between commits (actors/chat/upkeep/search-upkeep.ts), never inside of one.
insert into message_search (message_search, rank) values ('automerge', 0);
--> statement-breakpoint
insert into message_search (message_search, rank) values ('crisismerge', 1000);
--> statement-breakpoint
insert into title_search (title_search, rank) values ('automerge', 0);
--> statement-breakpoint
insert into title_search (title_search, rank) values ('crisismerge', 1000);
