// A user's theme, terminal font, and last values of template parameters.
import { t } from "elysia";
import { findSelf, loadLastParameters, setAppearance } from "#domain/users/appearance.ts";
import { userPath } from "#domain/users/find.ts";
import { TERMINAL_FONTS } from "#schema/deployment/appearance.ts";
import { oneOf } from "#schema/one-of.ts";
import { named } from "#schema/shape-names.ts";
import { lineText } from "#schema/text.ts";
import type { ApiContext } from "../context.ts";
import { callers } from "../http/caller.ts";
import { operation } from "../http/operation.ts";
import { fails } from "../http/responses.ts";
import { routes } from "../http/routes.ts";

const tags = ["Users"];
const userOptions = { user: true, params: userPath } as const;

const Appearance = named(
  "UserAppearance",
  t.Object({
    theme_preference: lineText({
      maxLength: 32,
      description: "The theme, such as `light`, `dark` or `auto`. If empty, the browser's default.",
    }),
    terminal_font: oneOf(TERMINAL_FONTS, "The font of terminals. If empty, the system's default."),
  }),
);
const AutofillParameter = named("AutofillParameter", t.Object({ name: t.String(), value: t.String() }));

export const userAppearance = (ctx: ApiContext) =>
  routes()
    .use(callers)
    .get(
      "/:user/appearance",
      async ({ caller, params }) => {
        const { theme_preference, terminal_font } = await findSelf(ctx, params.user, caller);
        return { theme_preference, terminal_font: TERMINAL_FONTS.find((one) => one === terminal_font) ?? "" };
      },
      {
        ...userOptions,
        response: { 200: Appearance, ...fails(401, 403, 404) },
        detail: operation({
          tags,
          operationId: "getUserAppearance",
          summary: "Get your theme and font",
          access: "owner_only",
          scope: "user:read_personal",
        }),
      },
    )
    .put(
      "/:user/appearance",
      async ({ caller, params, body }) => {
        await setAppearance(ctx, await findSelf(ctx, params.user, caller), body);
        return body;
      },
      {
        ...userOptions,
        body: Appearance,
        response: { 200: Appearance, ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "updateUserAppearance",
          summary: "Update your theme and font",
          example: { theme_preference: "dark", terminal_font: "" },
          access: "owner_only",
          scope: "user:update_personal",
        }),
      },
    )
    .get(
      "/:user/autofill-parameters",
      async ({ caller, params, query }) => {
        const { id } = await findSelf(ctx, params.user, caller);
        return loadLastParameters(ctx, id, query.template_id, caller);
      },
      {
        ...userOptions,
        query: t.Object({ template_id: t.String({ format: "uuid", description: "The ID of the template." }) }),
        response: { 200: t.Array(AutofillParameter), ...fails(400, 401, 403, 404) },
        detail: operation({
          tags,
          operationId: "listAutofillParameters",
          summary: "List your autofill parameters",
          description: "Returns the parameter values of your newest workspace with the template.",
          access: "owner_only",
          scope: "user:read_personal",
        }),
      },
    );
