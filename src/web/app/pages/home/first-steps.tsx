// The first steps of a new user, above their workspaces: shown until all are done or dismissed in this browser.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call } from "../../data/api.ts";
import { chats, chatsLoaded } from "../../data/chats.ts";
import { useResource } from "../../data/resource.ts";
import { isSiteOwner, isUserAdministrator } from "../../data/session.ts";
import { ButtonLink, IconButton } from "../../parts/button.tsx";
import { Icon } from "../../parts/icon.tsx";

const DISMISSED_KEY = "first-steps-ended";

const isDismissed = signal(localStorage.getItem(DISMISSED_KEY) !== null);

const dismiss = (): void => {
  localStorage.setItem(DISMISSED_KEY, "");
  isDismissed.value = true;
};

type Step = {
  readonly title: string;
  readonly text: string;
  readonly isDone: boolean;
  readonly href: string;
  readonly action: string;
};

/** Shown to users who have a workspace: without one, the page offers templates. */
export const FirstSteps = () => {
  const canInvite = isSiteOwner.value || isUserAdministrator.value;
  const { state } = useResource(canInvite && !isDismissed.value ? "first people" : undefined, async () => {
    const [{ count }, { invitations }] = await Promise.all([
      call("GET /users", { query: { limit: 1 } }),
      call("GET /invitations"),
    ]);
    return count + invitations.length;
  });
  const peopleCount = state.value.data;
  const isLoaded = chatsLoaded.value && (!canInvite || peopleCount !== undefined);
  const steps: Step[] = [
    {
      title: "Create a workspace",
      text: "A computer for one task, made from a template.",
      isDone: true,
      href: "/new",
      action: "Create another",
    },
    {
      title: "Start a chat",
      text: "An agent works in your workspace.",
      isDone: chats.value.size > 0,
      href: "/chats",
      action: "New chat",
    },
    ...(canInvite
      ? [
          {
            title: "Invite people",
            text: "Each gets a link to create an account.",
            isDone: (peopleCount ?? 0) > 1,
            href: "/admin/people",
            action: "Invite people",
          },
        ]
      : []),
  ];
  const areAllDone = isLoaded && steps.every((one) => one.isDone);
  useEffect(() => {
    if (areAllDone) dismiss();
  }, [areAllDone]);
  if (isDismissed.value || !isLoaded || areAllDone) return null;
  return (
    <section class="stack" aria-labelledby="first-steps">
      <div class="head">
        <h2 id="first-steps">First steps</h2>
        <span class="push">
          <IconButton icon="x" label="Dismiss first steps" onPress={dismiss} />
        </span>
      </div>
      <ul class="panel list">
        {steps.map((one) => (
          <li key={one.title} class="item">
            <span class="line">
              <span class={one.isDone ? "t-ok" : "dim"}>
                <Icon name={one.isDone ? "check" : "play"} />
              </span>
              <span class="med clip">{one.title}</span>
            </span>
            {one.isDone ? (
              <span class="badge">Done</span>
            ) : (
              <ButtonLink small href={one.href}>
                {one.action}
              </ButtonLink>
            )}
            <span class="sub clip">{one.text}</span>
          </li>
        ))}
      </ul>
    </section>
  );
};
