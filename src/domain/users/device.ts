// Parses program and system from a User-Agent header for the list of sessions. The rules are simple, because people only need to recognize
// their own devices.

export type Device = {
  /** A browser or program; empty if unknown. */
  readonly client: string;
  /** An operating system; empty if unknown. */
  readonly os: string;
  readonly kind: "browser" | "program" | "unknown";
};

/** The order matters: most browsers also name the ones they are derived from. */
const BROWSERS: readonly [pattern: RegExp, name: string][] = [
  [/\b(?:Edg|EdgA|EdgiOS)\/(\d+)/, "Edge"],
  [/\b(?:OPR|Opera)\/(\d+)/, "Opera"],
  [/\bVivaldi\/(\d+)/, "Vivaldi"],
  [/\bSamsungBrowser\/(\d+)/, "Samsung Internet"],
  [/\b(?:Firefox|FxiOS)\/(\d+)/, "Firefox"],
  [/\b(?:HeadlessChrome|Chrome|CriOS)\/(\d+)/, "Chrome"],
  [/\bVersion\/(\d+)[\d.]* .*\bSafari\//, "Safari"],
];

const SYSTEMS: readonly [pattern: RegExp, name: string][] = [
  [/\b(?:iPhone|iPad|iPod)\b/, "iOS"],
  [/\bAndroid\b/, "Android"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bWindows\b|\bwin32\b/i, "Windows"],
  [/\bMac OS X\b|\bMacintosh\b|\bdarwin\b/i, "macOS"],
  [/\bLinux\b|\bX11\b/i, "Linux"],
];

/** Programs send their own name first: `coder-cli/v2.1 (linux/amd64; )`, `curl/8.5`. */
const PROGRAM = /^([A-Za-z][\w .+-]{0,40})\/v?(\d[\w.]{0,15})/;

/** Longer than any browser's, and short enough for the patterns above. */
const MAX_USER_AGENT_LENGTH = 512;

/** `header`: the unmodified User-Agent header. */
export const parseDevice = (header: string): Device => {
  const user_agent = header.slice(0, MAX_USER_AGENT_LENGTH);
  const os = SYSTEMS.find(([pattern]) => pattern.test(user_agent))?.[1] ?? "";
  for (const [pattern, name] of user_agent.startsWith("Mozilla/") ? BROWSERS : []) {
    const version = pattern.exec(user_agent)?.[1];
    if (version !== undefined) return { client: `${name} ${version}`, os, kind: "browser" };
  }
  const [, name, version] = (!user_agent.startsWith("Mozilla/") && PROGRAM.exec(user_agent)) || [];
  return name === undefined
    ? { client: "", os, kind: "unknown" }
    : { client: `${name} ${version}`, os, kind: "program" };
};
