delete from "budget_periods" where "budget_id" in (select "id" from "budgets" where ("scope" = 'organization' and "scope_id" in (select "id" from "organizations" where "deleted" = 1))
	or ("scope" = 'group' and "scope_id" not in (select "id" from "groups"))
	or ("scope" = 'template' and "scope_id" in (select t."id" from "templates" t, "organizations" o where o."id" = t."organization_id" and o."deleted" = 1)));
--> statement-breakpoint
delete from "budgets" where ("scope" = 'organization' and "scope_id" in (select "id" from "organizations" where "deleted" = 1))
	or ("scope" = 'group' and "scope_id" not in (select "id" from "groups"))
	or ("scope" = 'template' and "scope_id" in (select t."id" from "templates" t, "organizations" o where o."id" = t."organization_id" and o."deleted" = 1));
