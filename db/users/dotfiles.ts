// People's dotfiles, stored in columns of their accounts.
import { and, eq, ne, sql } from "drizzle-orm";
import { build, query } from "../engine/sql.ts";
import { templates } from "../schema/templates.ts";
import { users } from "../schema/users.ts";

const param = sql.placeholder;

/** The dotfiles to install in a workspace: {owner_id, template_id}. No row if the owner has none, or the template does not allow them. */
export const findDotfilesToInstall = query(
  build
    .select({
      url: users.dotfiles_url,
      branch: users.dotfiles_branch,
      install_command: users.dotfiles_install_command,
    })
    .from(users)
    .innerJoin(templates, and(eq(templates.id, param("template_id")), eq(templates.allow_dotfiles, true)))
    .where(and(eq(users.id, param("owner_id")), ne(users.dotfiles_url, ""))),
);
