/**
 * The `Host` header that the local server receives. `preserve` forwards the public host name. `rewrite` sends the local
 * server's own, replaces it in `Origin` and `Referer` too, and turns redirects to the local server back into public ones. Any
 * other value is the host name to send. `auto` preserves, until the local server turns out to be a development server that
 * refuses unknown host names; from then on it rewrites.
 */
import { UsageError } from "../options.ts";
import { getWebOrigin, type Target } from "./target.ts";
import { findHeader, replaceHeaderValues } from "../../shared/raw-headers.ts";

type HostMode = "auto" | "preserve" | "rewrite" | { name: string };

/** A host name or address, with or without a port. */
const HOST = /^(\[[\da-f:.]+\]|[\w.-]+)(:\d{1,5})?$/i;

/** @param option for the message. @throws UsageError */
export function parseHostMode(text: string, option: string): HostMode {
  if (text === "auto" || text === "preserve" || text === "rewrite") return text;
  if (HOST.test(text)) return { name: text };
  throw new UsageError(`${option} must be auto, preserve, rewrite or a host name, not ${text}`);
}

/** How Vite and webpack-dev-server answer an unknown host name. */
const REFUSALS = [
  "Blocked request. This host",
  "Invalid Host header",
  "Invalid Host/Origin header",
];

export class HostHeader {
  #mode: HostMode;
  readonly #local: string;
  readonly #localOrigin: string;

  constructor(mode: HostMode, target: Target) {
    this.#mode = mode;
    this.#localOrigin = getWebOrigin(target);
    this.#local = this.#localOrigin.slice(this.#localOrigin.indexOf("//") + 2);
  }

  /** Changes the header pairs of a request in place. */
  rewriteRequest(pairs: string[]): void {
    const name = this.#getHostName();
    if (name === undefined) return;
    const publicHost = findHeader(pairs, "host");
    replaceHeaderValues(pairs, (header, value) => {
      if (header === "host") return name;
      if (this.#mode !== "rewrite" || publicHost === null) return value;
      const namesOrigin = header === "origin" || header === "referer";
      return namesOrigin ? replaceOrigin(value, publicHost, this.#localOrigin) : value;
    });
  }

  /** Changes the header pairs of a response in place: a redirect to the local server leads to the public origin. */
  rewriteResponse(pairs: string[], publicOrigin: string): void {
    if (this.#mode !== "rewrite") return;
    replaceHeaderValues(pairs, (name, value) => {
      if (name.toLowerCase() !== "location") return value;
      const rest = value.slice(this.#localOrigin.length);
      const isLocal = value.startsWith(this.#localOrigin) && /^([/?#]|$)/.test(rest);
      return isLocal ? publicOrigin + rest : value;
    });
  }

  /** Whether the first bytes of a response with this status should be passed to `rewriteIfRefused`. */
  mayBeRefusal(status: number): boolean {
    return this.#mode === "auto" && (status === 403 || status === 400);
  }

  /** @returns true when the response refuses the host name, which is rewritten from now on. */
  rewriteIfRefused(start: string): boolean {
    if (this.#mode !== "auto" || !REFUSALS.some((refusal) => start.startsWith(refusal)))
      return false;
    this.#mode = "rewrite";
    return true;
  }

  #getHostName(): string | undefined {
    if (this.#mode === "auto" || this.#mode === "preserve") return undefined;
    return this.#mode === "rewrite" ? this.#local : this.#mode.name;
  }
}

function replaceOrigin(value: string, publicHost: string, localOrigin: string): string {
  for (const scheme of ["http://", "https://"]) {
    const origin = scheme + publicHost;
    const rest = value.slice(origin.length);
    if (value.startsWith(origin) && /^(\/|$)/.test(rest)) return localOrigin + rest;
  }
  return value;
}
