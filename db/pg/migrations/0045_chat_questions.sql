alter table "chats" add column "asked_by" text;
--> statement-breakpoint
update "chats" set "asked_by" = (
	select part.value ->> 'tool_name' from "messages" m, json_array_elements(m."content"::json) part(value)
	where m."chat" = "chats"."key" and m."id" > "chats"."last_assistant_id" and m."deleted" = 0 and m."role" = 'tool'
		and part.value ->> 'tool_name' in ('ask_user_question', 'propose_plan')
		and coalesce(part.value ->> 'is_error', 'false') = 'false'
		and not exists (select 1 from "messages" u where u."chat" = m."chat" and u."id" > m."id" and u."deleted" = 0 and u."role" = 'user')
	order by m."id" desc limit 1)
where "status" = 'waiting';
