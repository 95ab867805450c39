// The value kinds of settings. A kind describes the accepted format, parses text to a value and prints the value. Parsing is pure: it never
// accesses files or the network.
import { isIP, isIPv6 } from "node:net";

export interface Kind<T> {
  /** The accepted format, to complete the sentence "expected ...". */
  readonly accepts: string;
  /** The placeholder after the flag in the help text, such as `HOST:PORT`. Empty for switches. */
  readonly placeholder: string;
  /** Returns the value, or undefined when the text does not have the accepted format. */
  parse(text: string): T | undefined;
  /** Returns text that `parse` converts to the same value. */
  print(value: T): string;
  /** Accepts a YAML list of scalars as well as comma-separated text. */
  readonly list?: true;
  /** Accepts mappings and lists of them: as YAML in the settings file, as JSON elsewhere. */
  readonly structured?: true;
  /** Describes what is wrong with an invalid text; never includes a value. */
  mistake?(text: string): string | undefined;
  /** The flag can be used without a value, which means true. */
  readonly bare?: true;
}

/** A host without brackets and a port; port 0 lets the system choose. */
export interface Address {
  host: string;
  port: number;
}

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*\.?$/i;
const DURATION_PART = /(\d+(?:\.\d+)?)(ms|s|m|h|d)/gy;
const UNIT_MS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** The longest duration that most settings accept. */
export const YEAR_MS = 366 * 86_400_000;

/** One non-empty line of text. */
export const text: Kind<string> = {
  accepts: "text on one line",
  placeholder: "TEXT",
  parse: (value) => (value.trim() === "" || /[\r\n\0]/.test(value) ? undefined : value),
  print: (value) => value,
};

/** A path; a relative one is resolved against the working directory. */
export const path: Kind<string> = {
  ...text,
  accepts: "a path, absolute or relative to the working directory",
  placeholder: "PATH",
};

export const flag: Kind<boolean> = {
  accepts: "true or false",
  placeholder: "",
  bare: true,
  parse: (value) => ({ true: true, false: false })[value.toLowerCase()],
  print: String,
};

/** An integer from `low` to `high`, both included. */
export const integer = (low: number, high: number): Kind<number> => ({
  accepts: `a whole number from ${low} to ${high}`,
  placeholder: "N",
  parse(value) {
    const number = /^\d{1,15}$/.test(value) ? Number(value) : Number.NaN;
    return number >= low && number <= high ? number : undefined;
  },
  print: String,
});

export const choice = <const T extends string>(...allowed: T[]): Kind<T> => ({
  accepts: `one of ${allowed.join(", ")}`,
  placeholder: allowed.join("|"),
  parse: (value) => allowed.find((one) => one === value.toLowerCase()),
  print: (value) => value,
});

/** Milliseconds, written as 500ms, 5s, 2m, 1h30m or 1d. */
export const duration = (lowMs: number, highMs: number): Kind<number> => ({
  accepts: `a duration such as 500ms, 5s, 2m or 1h30m, from ${printDuration(lowMs)} to ${printDuration(highMs)}`,
  placeholder: "DURATION",
  parse(value) {
    let total = 0;
    let parsedLength = 0;
    for (const [part, number, unit] of value.matchAll(DURATION_PART)) {
      total += Number(number) * (UNIT_MS[unit ?? ""] ?? Number.NaN);
      parsedLength += part.length;
    }
    return parsedLength === value.length && parsedLength > 0 && total >= lowMs && total <= highMs ? total : undefined;
  },
  print: printDuration,
});

function printDuration(ms: number): string {
  if (ms === 0) return "0s";
  const unit = ["d", "h", "m", "s"].find((name) => ms % (UNIT_MS[name] ?? 1) === 0) ?? "ms";
  return `${ms / (UNIT_MS[unit] ?? 1)}${unit}`;
}

/** `127.0.0.1:7080`, `[::1]:7080`, `name:7080`. */
export const address: Kind<Address> = {
  accepts:
    "host:port with the port from 0 to 65535 (0 = any free port), an IPv6 host in brackets: 127.0.0.1:7080 or [::1]:7080",
  placeholder: "HOST:PORT",
  parse(value) {
    const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^[\]:]+)):(\d{1,5})$/.exec(value) ?? [];
    const port = Number(digits);
    if (digits === undefined || port > 65535) return undefined;
    if (bracketed !== undefined) return isIPv6(bracketed) ? { host: bracketed.toLowerCase(), port } : undefined;
    return plain !== undefined && isHostName(plain) ? { host: plain.toLowerCase(), port } : undefined;
  },
  print: ({ host, port }) => `${host.includes(":") ? `[${host}]` : host}:${port}`,
};

/** The URL of a server as people and workspaces reach it, without path and credentials. */
export const baseUrl: Kind<URL> = {
  accepts: "an http or https URL without path, query or credentials, such as https://slipway.example.com",
  placeholder: "URL",
  parse(value) {
    const url = URL.canParse(value) ? new URL(value) : undefined;
    if (!url || !/^https?:$/.test(url.protocol)) return undefined;
    return url.pathname + url.search + url.hash + url.username + url.password === "/" ? url : undefined;
  },
  print: (value) => value.origin,
};

/** `*.apps.example.com` or `*.apps.example.com:8443`: all host names with one more label. */
export const wildcardHost: Kind<string> = {
  accepts:
    "a host with * as its first label and an optional port, such as *.apps.example.com or *.apps.example.com:8443",
  placeholder: "HOST",
  parse(value) {
    const [, name, port] = /^\*\.([^:]+)(:\d{1,5})?$/.exec(value.trim()) ?? [];
    if (name === undefined || /^[\d.]+$/.test(name) || name.endsWith(".") || !isHostName(name)) return undefined;
    return Number(port?.slice(1) ?? 1) > 65535 ? undefined : `*.${name.toLowerCase()}${port ?? ""}`;
  },
  print: (value) => value,
};

/** Hostnames as in a Host header: without port, lower case, IPv6 in brackets. */
export const hosts: Kind<readonly string[]> = listKind("host names or IP addresses without port", "HOSTS", (item) => {
  const bare = item.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  if (isIPv6(bare)) return `[${bare}]`;
  return isHostName(item) ? item.toLowerCase() : undefined;
});

/** IP addresses or networks in CIDR form; can be empty. */
export const networks: Kind<readonly string[]> = listKind(
  "IP addresses or networks such as 10.0.0.0/8",
  "NETWORKS",
  (item) => {
    const [, base, bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(item) ?? [];
    const version = base === undefined ? 0 : isIP(base);
    if (version === 0) return undefined;
    return bits === undefined || Number(bits) <= (version === 6 ? 128 : 32) ? item.toLowerCase() : undefined;
  },
  true,
);

/** Origins of servers, without a path; can be empty. */
export const origins: Kind<readonly string[]> = listKind(
  "addresses such as http://127.0.0.1:11434",
  "URLS",
  (item) => {
    const url = URL.canParse(item) ? new URL(item) : undefined;
    return url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/` ? url.origin : undefined;
  },
  true,
);

const BROWSER_SCHEMES = new Set([
  "http",
  "https",
  "javascript",
  "data",
  "file",
  "blob",
  "about",
  "view-source",
  "vbscript",
  "mailto",
]);

/** URL schemes of programs, without a colon; can be empty. Schemes of browsers and mail programs are rejected. */
export const programSchemes: Kind<readonly string[]> = listKind(
  "schemes of programs such as vscode",
  "SCHEMES",
  (item) =>
    /^[a-z][a-z0-9+.-]*$/i.test(item) && !BROWSER_SCHEMES.has(item.toLowerCase()) ? item.toLowerCase() : undefined,
  true,
);

/** Text that matches `pattern`; `accepts` describes it in words. */
export const matching = (pattern: RegExp, accepts: string, placeholder = "TEXT"): Kind<string> => ({
  accepts,
  placeholder,
  parse: (value) => (pattern.test(value) ? value : undefined),
  print: (value) => value,
});

/** Comma-separated items, each parsed by `parseItem`. `items` describes them in words. */
export function listKind(
  items: string,
  placeholder: string,
  parseItem: (text: string) => string | undefined,
  canBeEmpty = false,
): Kind<readonly string[]> {
  return {
    accepts: `a comma-separated list of ${items}`,
    placeholder,
    list: true,
    parse(value) {
      if (value.trim() === "") return canBeEmpty ? [] : undefined;
      const parsed = value.split(",").map((one) => parseItem(one.trim()));
      return parsed.every((one) => one !== undefined) ? parsed : undefined;
    },
    print: (value) => value.join(","),
  };
}

// A text of digits and dots must be an IPv4 address: 127.0.0.256 is not a hostname.
function isHostName(value: string): boolean {
  return /^[\d.]+$/.test(value) ? isIP(value) === 4 : HOST_NAME.test(value);
}
