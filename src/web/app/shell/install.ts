// Makes the app installable: registers the service worker (../sw.ts), which browsers allow over HTTPS and on localhost.

const PATH = "/sw.js";
type Policy = { createScriptURL(url: string): string };
type PolicyFactory = {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): Policy;
};

/**
 * Trusted Types require a policy for the address of a script. The page allows one policy of this name, and it returns only this address.
 */
const getScriptUrl = (): string => {
  const { trustedTypes } = globalThis as { trustedTypes?: PolicyFactory };
  return trustedTypes
    ? trustedTypes.createPolicy("slipway-worker", { createScriptURL: () => PATH }).createScriptURL("")
    : PATH;
};

export const registerWorker = (): void => {
  if (!("serviceWorker" in navigator)) return;
  const url = getScriptUrl();
  // Runs after everything the first page needs.
  const register = (): unknown => setTimeout(() => void navigator.serviceWorker.register(url).catch(() => {}), 1_000);
  if (document.readyState === "complete") register();
  else addEventListener("load", register);
};

/** Opens the page that a clicked system notification is about. Returns a function that stops listening. */
export const onNoticeClick = (route: (path: string) => void): (() => void) => {
  const onMessage = ({ data }: MessageEvent<{ readonly show?: string }>): void => {
    if (data.show?.startsWith("/")) route(data.show);
  };
  navigator.serviceWorker?.addEventListener("message", onMessage);
  return () => navigator.serviceWorker?.removeEventListener("message", onMessage);
};
