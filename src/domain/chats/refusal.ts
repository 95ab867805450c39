// Decides whether a chat's turn may continue: only while its owner could start it. A turn can run for hours without its owner, so this is
// checked before each model call and each tool call, and before a queued message starts the next turn (rule CH-51).
import { findLastPromptTime, findOwnerStanding } from "#db/chats/owner-standing.ts";
import { readMemberships } from "#db/users/members.ts";
import type { DomainContext } from "../context.ts";
import { needsFactor } from "../factors/policy.ts";

type Deps = Pick<DomainContext, "store" | "config">;
type Standing = NonNullable<Awaited<ReturnType<typeof findStanding>>>;

const findStanding = ({ store }: Pick<Deps, "store">, chat_id: string) => store.get(findOwnerStanding({ id: chat_id }));

/**
 * Returns why the chat's owner may not use models in the chat's organization now, as a sentence; undefined if they may, or if the chat does
 * not exist.
 */
export const findOwnerRefusal = async (deps: Deps, chat_id: string): Promise<string | undefined> => {
  const standing = await findStanding(deps, chat_id);
  return standing && explainOwnerRefusal(deps, standing);
};

/**
 * Returns why the chat's turn must not continue, as a sentence. `prompted_at` is the time of the turn's prompt; by default, of the last
 * message that a person wrote.
 */
export const findTurnRefusal = async (
  deps: Deps,
  chat_id: string,
  prompted_at?: number,
): Promise<string | undefined> => {
  const standing = await findStanding(deps, chat_id);
  if (!standing) return undefined;
  return (await explainOwnerRefusal(deps, standing)) ?? (await explainPasswordReset(deps, standing, prompted_at));
};

const explainOwnerRefusal = async ({ store, config }: Deps, owner: Standing): Promise<string | undefined> => {
  if (owner.deleted) return "The account of this chat's owner was deleted.";
  if (owner.status === "suspended") return "The account of this chat's owner is suspended.";
  if (!owner.is_member) return "The owner of this chat is not a member of its organization anymore.";
  if (owner.has_second_factor) return undefined;
  const policy = config.require_second_factor;
  const organizations = policy === "administrators" ? (await readMemberships(store, owner.owner_id)).organizations : {};
  const isMissing = needsFactor(policy, { ...owner, organizations });
  return isMissing ? "The owner of this chat must set up a second factor first." : undefined;
};

const explainPasswordReset = async (
  { store }: Deps,
  { key, password_reset_at }: Standing,
  prompted_at: number | undefined,
): Promise<string | undefined> => {
  if (password_reset_at === null) return undefined;
  const promptTime = prompted_at ?? (await store.get(findLastPromptTime({ chat: key })))?.created_at ?? 0;
  if (promptTime > password_reset_at) return undefined;
  return "The password of this chat's owner was reset after the last message. Send a message to continue.";
};
