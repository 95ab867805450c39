-- The triggers of db/engine/user-status.sql in PostgreSQL's words.
create function user_status_inserted() returns trigger language plpgsql as $$
  begin insert into user_status_changes (user_id, status, at) values (new.id, new.status, new.created_at); return null; end $$;
--> statement-breakpoint
create trigger user_status_inserted after insert on users for each row execute function user_status_inserted();
--> statement-breakpoint
create function user_status_changed() returns trigger language plpgsql as $$
  begin insert into user_status_changes (user_id, status, at) values (new.id, new.status, greatest(new.updated_at, coalesce(new.last_seen_at, 0))); return null; end $$;
--> statement-breakpoint
create trigger user_status_changed after update of status on users for each row when (old.status <> new.status) execute function user_status_changed();
--> statement-breakpoint
create function user_deleted() returns trigger language plpgsql as $$
  begin insert into user_status_changes (user_id, status, at) values (new.id, 'deleted', new.updated_at); return null; end $$;
--> statement-breakpoint
create trigger user_deleted after update of deleted on users for each row when (old.deleted = 0 and new.deleted = 1) execute function user_deleted();
