/** Options of HTTP tunnels: where visitors reach the tunnel, and what they must bring. */
import { UsageError, type OptionSpec } from "../options.ts";
import { OFF } from "./off.ts";

export const PUBLIC_TUNNEL_OPTIONS = {
  url: {
    kind: "text",
    placeholder: "URL",
    help: "the public URL: a name of the service, or your own verified domain",
    excludes: ["subdomain", "name"],
    parse: parsePublicUrl,
  },
  "basic-auth": {
    kind: "text",
    placeholder: "USER:PASSWORD",
    help: "require this password of visitors; safer in UNDERPASS_BASIC_AUTH; off removes the current one",
    word: OFF,
    parse: async (text: string, option: string) =>
      (await import("./basic-auth.ts")).parseBasicAuth(text, option),
  },
  "policy-file": {
    kind: "text",
    placeholder: "FILE",
    help: "the tunnel's traffic policy, in YAML or JSON; off removes the current one",
    complete: "file",
    word: OFF,
    parse: async (text: string, option: string) =>
      (await import("./policy-file.ts")).readPolicyFile(text, option),
  },
} as const satisfies Record<string, OptionSpec>;

/** Where visitors reach the tunnel. */
export interface PublicUrl {
  host: string;
  /** `http:` or `https:`; undefined when only the host was given. */
  scheme: string | undefined;
}

/** @throws UsageError */
export function parsePublicUrl(text: string, source: string): PublicUrl {
  const hasScheme = text.includes("://");
  const absolute = hasScheme ? text : `https://${text}`;
  const url = URL.canParse(absolute) ? new URL(absolute) : null;
  if (!url || !["http:", "https:"].includes(url.protocol) || url.hostname === "")
    throw new UsageError(`${source} must be a URL such as https://app.example.com, not ${text}`);
  if (url.pathname !== "/" || url.search !== "" || url.hash !== "" || url.username !== "")
    throw new UsageError(`${source} must be a host without a path, such as https://${url.host}`);
  if (!/[.:]/.test(url.hostname)) {
    const example = `${url.protocol}//${url.hostname}.example.com`;
    throw new UsageError(
      `${source} must be a whole host such as ${example}, not ${text}; --subdomain needs only a name`,
    );
  }
  return {
    host: url.hostname.replace(/\.$/, ""),
    scheme: hasScheme ? url.protocol : undefined,
  };
}
