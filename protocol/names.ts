/** Subdomains of tunnels: which are valid, which are reserved, and which a token's patterns allow. */
import { matchesWildcard } from "../shared/text/wildcard.ts";

/** One DNS label (RFC 1035 §2.3.4). */
export const SUBDOMAIN_MAX_CHARS = 63;

/** One DNS label in lower case. */
export const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Continues the name of a field whose value does not match `LABEL`. */
export const LABEL_MESSAGE =
  "must have 1 to 63 lower-case letters, digits or hyphens, with no hyphen at the start or the end";

/** Labels that visitors could mistake for the service itself, or that mail clients and browsers look up by convention. */
const RESERVED: ReadonlySet<string> = new Set(
  `about abuse account accounts admin administrator agent api app apps assets auth autoconfig
  autodiscover billing cdn checkout connect console dashboard dns docs download edge email ftp gateway
  help hostmaster hosting imap info internal localdomain localhost login logout mail mx mx1 mx2 noc ns ns0
  ns1 ns2 ns3 ns4 oauth operator ops pay payment payments pop pop3 portal postmaster private proxy public register
  relay root secure security server service settings setup signin signup smtp ssh ssl sso staff static
  stats status support sysadmin system tcp tunnel tunnels udp underpass update usenet vpn webmail
  webmaster whois wpad ws www`.split(/\s+/),
);

/** `xn--` and similar prefixes mark encoded names, which are displayed as something else. */
const ENCODED = /^..--/;

/**
 * Finds labels that no organization can have: reserved ones, those that look like one (`l0gin`, `log-in`, `rnail`,
 * `vvww`), and encoded ones.
 *
 * @returns why, as a message that continues the label; null for any other label.
 */
export function findReservedLabelError(label: string): string | null {
  if (RESERVED.has(label)) return "is reserved for the service";
  if (ENCODED.test(label)) return 'is not allowed: "--" after two characters marks encoded names';
  const read = label.replaceAll("vv", "w").replaceAll("rn", "m");
  // `mall` is a word of its own; `ma1l` is not.
  const isLookalike = /[0-9-]/.test(label) && RESERVED_LOOKALIKES.has(toLookalike(read));
  if (!isLookalike && !RESERVED.has(read)) return null;
  return "is not allowed: it looks like a name that is reserved for the service";
}

const LETTER_LIKE: Record<string, string> = {
  "-": "",
  "0": "o",
  "1": "l",
  i: "l",
  "3": "e",
  "4": "a",
  "5": "s",
  "7": "t",
  "8": "b",
};

/** A 5 at the end is read as a number: `app5` follows `app4`. */
function toLookalike(label: string): string {
  return label.replace(/[-01i3478]|5(?=.*[a-z])/g, (character) => LETTER_LIKE[character]!);
}

const RESERVED_LOOKALIKES: ReadonlySet<string> = new Set([...RESERVED].map(toLookalike));

/** @returns what is wrong with a tunnel's whole label; null when it is valid. */
export function findLabelError(label: string): string | null {
  if (label.length > SUBDOMAIN_MAX_CHARS) {
    return `must have at most ${SUBDOMAIN_MAX_CHARS} characters, including the project's suffix`;
  }
  if (!LABEL.test(label)) return LABEL_MESSAGE;
  return null;
}

/** Every organization has this project permanently; its tunnels have no suffix. */
export const DEFAULT_PROJECT_SLUG = "default";

/** A tunnel of any other project has its slug as a suffix: `api` in `staging` is `api-staging`. */
export function toLabel(name: string, projectSlug: string): string {
  return projectSlug === DEFAULT_PROJECT_SLUG ? name : `${name}-${projectSlug}`;
}

/** A token's pattern: a label in which `*` matches any number of characters, including none. */
export const SUBDOMAIN_WILDCARD = /^[a-z0-9*](?:[a-z0-9*-]{0,61}[a-z0-9*])?$/;

/**
 * The pattern of whole labels for a pattern of names in a project: `pr-*` in `staging` is `pr-*-staging`. One that ends
 * with the project's suffix is a pattern of whole labels already.
 *
 * @returns null when it can match no tunnel of the project.
 */
export function toLabelPattern(pattern: string, projectSlug: string): string | null {
  if (projectSlug === DEFAULT_PROJECT_SLUG) return pattern;
  const suffix = `-${projectSlug}`;
  const whole = pattern.endsWith(suffix) ? pattern : pattern + suffix;
  return whole.replaceAll("*", "").length <= SUBDOMAIN_MAX_CHARS ? whole : null;
}

/** An empty list allows every label. */
export function isAllowedLabel(patterns: readonly string[], label: string): boolean {
  return patterns.length === 0 || patterns.some((pattern) => matchesWildcard(pattern, label));
}

const ADJECTIVES =
  `able amber ample apt azure bold brave brief bright brisk calm candid clear clever cool
  coral cosy crisp curious daring deft eager early easy even fair fast fine fleet fond fresh gentle glad
  golden grand green happy hardy honest jolly keen kind lively loyal lucid lucky mellow merry mild neat
  nimble noble olive patient placid plucky polite proud quick quiet rapid ready rosy royal ruby rustic
  shiny silent silver sleek smart smooth snug solid spry stable steady sturdy sunny swift tidy tranquil
  true upbeat vast velvet vivid warm wild wise witty young zesty`.split(/\s+/);

const NOUNS = `acorn alder anchor arch aspen badger bay beacon birch bison bridge brook canyon cedar
  cliff cloud comet coral cove crane creek crow dale delta dove dune eagle elm ember falcon fern field
  finch fjord forest fox garden glade glen grove gull harbor hare hawk hazel heron hill ibis inlet island
  ivy jay juniper kestrel lagoon lake lark leaf lemur linden lynx maple marsh meadow mesa mill moon moss
  newt oak oasis ocean orchard osprey otter owl path peak pebble pine plum pond poplar prairie quail
  quartz rain raven reef ridge river robin sage shore sparrow spring spruce stone stream summit swan
  thicket tide trail tulip valley violet walnut wave willow wind wren`.split(/\s+/);

/** Crockford's alphabet has no letters and digits that are easily confused when a name is read aloud. */
const TAIL_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";
const TAIL_CHARS = 6;
/** A name without words has 45 bits: no fewer than one with words. */
const WORDLESS_CHARS = 9;

/**
 * `nimble-otter-7k3m9q`: easy to say, and too many to enumerate. The tail has 30 bits and the words have 13: an attacker
 * who tries 1,000 names a second while 10,000 tunnels exist finds one in about two weeks. Where the project's slug leaves
 * no room for the words, the name has only random characters.
 *
 * @returns null when the slug leaves no room for those either: `describeLongSlug` says so.
 */
export function generateRandomName(projectSlug: string): string | null {
  const maxChars = getNameMaxChars(projectSlug);
  if (maxChars < WORDLESS_CHARS) return null;
  const random = crypto.getRandomValues(new Uint16Array(2 + WORDLESS_CHARS));
  const pick = (from: string | string[], number: number) => from[number % from.length]!;
  const [adjective, noun] = [pick(ADJECTIVES, random[0]!), pick(NOUNS, random[1]!)];
  const tail = Array.from(random.subarray(2), (number) => pick(TAIL_ALPHABET, number)).join("");
  const name = `${adjective}-${noun}-${tail.slice(0, TAIL_CHARS)}`;
  return name.length <= maxChars ? name : tail;
}

/** @returns why a project has no random names, as a message that continues the name of the field with its slug. */
export function describeLongSlug(projectSlug: string): string {
  const maxChars = getNameMaxChars(projectSlug);
  return maxChars <= 0
    ? "leaves no character for a name: use a project with a shorter slug"
    : `leaves ${maxChars} of ${SUBDOMAIN_MAX_CHARS} characters for a name, too few for a random one: choose a subdomain`;
}

function getNameMaxChars(projectSlug: string): number {
  return SUBDOMAIN_MAX_CHARS - toLabel("", projectSlug).length;
}
