DELETE FROM `budget_periods` WHERE `budget_id` IN (SELECT `id` FROM `budgets` WHERE (`scope` = 'organization' AND `scope_id` IN (SELECT `id` FROM `organizations` WHERE `deleted` = 1))
	OR (`scope` = 'group' AND `scope_id` NOT IN (SELECT `id` FROM `groups`))
	OR (`scope` = 'template' AND `scope_id` IN (SELECT t.`id` FROM `templates` t, `organizations` o WHERE o.`id` = t.`organization_id` AND o.`deleted` = 1)));
--> statement-breakpoint
DELETE FROM `budgets` WHERE (`scope` = 'organization' AND `scope_id` IN (SELECT `id` FROM `organizations` WHERE `deleted` = 1))
	OR (`scope` = 'group' AND `scope_id` NOT IN (SELECT `id` FROM `groups`))
	OR (`scope` = 'template' AND `scope_id` IN (SELECT t.`id` FROM `templates` t, `organizations` o WHERE o.`id` = t.`organization_id` AND o.`deleted` = 1));
