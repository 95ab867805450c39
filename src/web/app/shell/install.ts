// Makes the app one that can be installed: registers the service worker (../sw.ts), which browsers allow over https and on this machine.

const PATH = "/sw.js";
type Policy = { createScriptURL(url: string): string };
type Factory = {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): Policy;
};

/**
 * Where Trusted Types are demanded, the address of a script must come from a policy; the page's allows one of this name, once, and it
 * gives this one address.
 */
const address = (): string => {
  const { trustedTypes } = globalThis as { trustedTypes?: Factory };
  return trustedTypes
    ? trustedTypes.createPolicy("slipway-worker", { createScriptURL: () => PATH }).createScriptURL("")
    : PATH;
};

export const registerWorker = (): void => {
  if (!("serviceWorker" in navigator)) return;
  const url = address();
  // After what the first page needs.
  const register = (): unknown => setTimeout(() => void navigator.serviceWorker.register(url).catch(() => {}), 1_000);
  if (document.readyState === "complete") register();
  else addEventListener("load", register);
};

/** Someone has clicked on a notification of the system: the worker names the page that it is about. Gives what ends it. */
export const onNoticeClick = (route: (path: string) => void): (() => void) => {
  const hear = ({ data }: MessageEvent<{ readonly show?: string }>): void => {
    if (data.show?.startsWith("/")) route(data.show);
  };
  navigator.serviceWorker?.addEventListener("message", hear);
  return () => navigator.serviceWorker?.removeEventListener("message", hear);
};
