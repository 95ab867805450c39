ALTER TABLE `chats` ADD `part` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `template_versions` ADD `part` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `workspaces` ADD `part` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
-- By hand from here on: what is there gets the part that src/base/parts.ts says. Prebuilds that wait are owned by a user of their own.
with recursive hash (id, at, value) as (
  select distinct owner_id, 1, 0 from chats
  union all select id, at + 1, (value * 31 + unicode(substr(id, at, 1))) % 65521 from hash where at <= length(id)
), parts as materialized (select id, value % 256 as part from hash where at > length(id))
update chats set part = parts.part from parts where parts.id = owner_id;
--> statement-breakpoint
with recursive hash (id, at, value) as (
  select distinct coalesce(template_id, template_versions.id), 1, 0 from template_versions
  union all select id, at + 1, (value * 31 + unicode(substr(id, at, 1))) % 65521 from hash where at <= length(id)
), parts as materialized (select id, value % 256 as part from hash where at > length(id))
update template_versions set part = parts.part from parts where parts.id = coalesce(template_id, template_versions.id);
--> statement-breakpoint
with recursive hash (id, at, value) as (
  select distinct case when owner_id = 'c42fdf75-3097-471c-8c33-fb52454d81c0' then template_id else owner_id end, 1, 0 from workspaces
  union all select id, at + 1, (value * 31 + unicode(substr(id, at, 1))) % 65521 from hash where at <= length(id)
), parts as materialized (select id, value % 256 as part from hash where at > length(id))
update workspaces set part = parts.part from parts where parts.id = case when owner_id = 'c42fdf75-3097-471c-8c33-fb52454d81c0' then template_id else owner_id end;
