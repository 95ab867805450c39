// Validates redirect URIs of applications (RFC 6749 3.1.2, RFC 8252 7 and 8.4). They must match exactly, except for the port of a loopback
// URI, which a program gets when it starts. Pure.
import { isUnsafeLink } from "#schema/text.ts";

const LOOPBACK = new Set(["127.0.0.1", "[::1]", "localhost"]);
/** Schemes that browsers handle themselves or that belong to no program. */
const RESERVED_SCHEMES =
  /^(?:https?|wss?|file|about|blob|data|javascript|vbscript|filesystem|view-source|chrome|resource|intent|android-app|ms-[a-z-]+|search-ms|x-web-search):$/i;
/**
 * Schemes that web sites can register for (`registerProtocolHandler`), and those whose programs send the address to a server: the code
 * would leave the user's machine.
 */
const SHARED_SCHEMES = new Set(
  [
    "bitcoin cabal dat did doi dweb ethereum ftp ftps geo hyper im ipfs ipns irc irc6 ircs magnet mailto matrix mms",
    "mmsto news nntp openpgp4fpr sftp sip sips sms smsto ssb ssh tel urn webcal webcals wtai xmpp",
    "afp cifs dav davs feed git gopher itms itms-services ldap ldaps nfs rdp rsync rtmp rtsp smb svn telnet turn vnc",
    "webdav webdavs",
  ].flatMap((line) => line.split(" ")),
);
/** Compound schemes such as `web+...` and `ext+...`, for which any site or browser extension can register, and `http+unix`. */
const SHARED_PREFIX = /^(?:web|ext|https?|ssh|git|svn|dav|davs|feed|ftp|webcal)\+/;

/** Schemes with which web browsers open an address, such as `microsoft-edge:https://...`, `googlechromes:` and `x-safari-https:`. */
const BROWSER_SCHEME =
  /(?:^|[.+-])(?:https?|(?:ms|microsoft-?)?edge|(?:google-?)?chromes?|chromium|firefox|brave|opera|vivaldi|safari|arc|duckduckgo|ddg[a-z]*|[a-z]*browser)(?=[.+:-])/;
/** A web address after the scheme, also percent-encoded: the program that opens the link could open this address. */
const WEB_ADDRESS = /\bhttps?(?::|%(?:25)*3a)|(?::|%(?:25)*3a)(?:\/|%(?:25)*2f){2}/i;

/** `scheme`: in lower case, with a colon. */
const isShared = (scheme: string): boolean =>
  SHARED_SCHEMES.has(scheme.slice(0, -1)) || SHARED_PREFIX.test(scheme) || BROWSER_SCHEME.test(scheme);

/** Returns whether only one program opens the URL, on the user's machine (RFC 8252 7.1). */
const isPrivateUse = ({ protocol }: URL, text: string): boolean =>
  !RESERVED_SCHEMES.test(protocol) && !isShared(protocol) && !WEB_ADDRESS.test(text.slice(protocol.length));

/** Parameters of the response: a redirect URI that already contains one could forge a response. */
const RESPONSE_PARAMETERS = ["code", "state", "iss", "error"];

const isLoopback = (url: URL): boolean => url.protocol === "http:" && LOOPBACK.has(url.hostname);

/**
 * Returns what is wrong with a redirect URI; undefined if it is valid. A self-registered application can only redirect to programs on the
 * user's machine.
 */
export const findRedirectUriProblem = (text: string, isSelfRegistered: boolean): string | undefined => {
  if (!URL.canParse(text) || isUnsafeLink(text) || /[\s\\]/.test(text)) return "is not an address";
  const url = new URL(text);
  if (text.includes("#")) return "must have no fragment";
  if (url.username !== "" || url.password !== "") return "must not hold a user name or password";
  if (RESPONSE_PARAMETERS.some((name) => url.searchParams.has(name)))
    return `must not hold ${RESPONSE_PARAMETERS.join(", ")} in its query`;
  if (isLoopback(url) || isPrivateUse(url, text)) return undefined;
  if (url.protocol === "https:" && !isSelfRegistered) return undefined;
  return isSelfRegistered
    ? "must be http on a loopback address, or have a scheme that only the program itself opens"
    : "must be https, http on a loopback address, or have a scheme that only the program itself opens";
};

/** A loopback URI as written, split before and after its port. */
const LOOPBACK_TEXT = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::\d{1,5})?((?:[/?].*)?)$/;

/** Returns a loopback URI without its port and with at least the path `/`, otherwise unchanged; undefined for any other URI. */
const removePort = (text: string): string | undefined => {
  const [, host, rest] = (URL.canParse(text) ? LOOPBACK_TEXT.exec(text) : undefined) ?? [];
  return host === undefined ? undefined : host + (rest || "/");
};

/** Returns whether a requested redirect URI is registered. */
export const isRegistered = (requested: string, registered: readonly string[]): boolean => {
  if (registered.includes(requested)) return true;
  const plain = removePort(requested);
  return plain !== undefined && registered.some((one) => removePort(one) === plain);
};

/** Returns the URI with more query parameters; undefined values are omitted. */
export const withParameters = (address: string, values: Readonly<Record<string, string | undefined>>): string => {
  const url = new URL(address);
  for (const [name, value] of Object.entries(values)) if (value !== undefined) url.searchParams.set(name, value);
  return url.href;
};

/** Returns the target of a URI in readable form. */
export const formatDestination = (address: string): string => {
  const url = new URL(address);
  if (isLoopback(url)) return `a program on your own machine (${url.host})`;
  return url.protocol === "https:" ? url.host : `the program on your own machine that opens ${url.protocol} links`;
};
