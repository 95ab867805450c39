// Users and their credentials, with one file per kind of resource.
import { userGitSshKey } from "../agents/git-ssh-key.ts";
import type { ApiContext } from "../context.ts";
import { factors } from "../factors/index.ts";
import { routes } from "../http/routes.ts";
import { oidc } from "../oidc/index.ts";
import { oidcLinks } from "../oidc/links.ts";
import { userAppearance } from "./appearance.ts";
import { userCollection } from "./collection.ts";
import { deployKeys } from "./deploy-keys.ts";
import { userDotfiles } from "./dotfiles.ts";
import { firstUser } from "./first.ts";
import { signInMethods } from "./methods.ts";
import { userById } from "./one.ts";
import { userOrganizations } from "./organizations.ts";
import { userPassword } from "./password.ts";
import { quietHours } from "./quiet-hours.ts";
import { userRoles } from "./roles.ts";
import { session } from "./session.ts";
import { sessions } from "./sessions.ts";
import { tokens } from "./tokens.ts";

export const users = (ctx: ApiContext) =>
  routes({ prefix: "/users" })
    .use(session(ctx))
    .use(firstUser(ctx))
    .use(signInMethods(ctx))
    .use(oidc(ctx))
    .use(userCollection(ctx))
    .use(userById(ctx))
    .use(oidcLinks(ctx))
    .use(factors(ctx))
    .use(userPassword(ctx))
    .use(userRoles(ctx))
    .use(userOrganizations(ctx))
    .use(userAppearance(ctx))
    .use(quietHours(ctx))
    .use(userDotfiles(ctx))
    .use(userGitSshKey(ctx))
    .use(deployKeys(ctx))
    .use(sessions(ctx))
    .use(tokens(ctx));
