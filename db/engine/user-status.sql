-- Every change of a user's status leaves a row, whoever makes it and in the same transaction. Drizzle knows no triggers, so this step
-- is written by hand, like search.sql. Whatever changes a status also sets one of the two times.
create trigger user_status_inserted after insert on users begin
  insert into user_status_changes (user_id, status, at) values (new.id, new.status, new.created_at);
end;
--> statement-breakpoint
create trigger user_status_changed after update of status on users when old.status <> new.status begin
  insert into user_status_changes (user_id, status, at)
  values (new.id, new.status, max(new.updated_at, coalesce(new.last_seen_at, 0)));
end;
--> statement-breakpoint
create trigger user_deleted after update of deleted on users when old.deleted = 0 and new.deleted = 1 begin
  insert into user_status_changes (user_id, status, at) values (new.id, 'deleted', new.updated_at);
end;
