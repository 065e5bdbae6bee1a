/**
 * Which name the local server is asked by. `preserve` passes the public name on; `rewrite` says the local
 * server's own, and then also speaks of it in `Origin` and `Referer` and turns its redirects to itself back
 * into public ones; anything else is the name to say. `auto` preserves until the local server turns out to
 * be a development server that refuses names it does not know, and rewrites from then on.
 */
import type { Target } from "./target.ts";
import { headerPairs, replaceValues } from "../shared/header-lines.ts";

export type HostMode = "auto" | "preserve" | "rewrite" | { name: string };

export function parseHostMode(text: string): HostMode {
  return text === "auto" || text === "preserve" || text === "rewrite" ? text : { name: text };
}

/** What Vite and webpack-dev-server say to a Host they do not know. */
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
    this.#localOrigin = target.origin;
    this.#local = target.origin.slice(target.origin.indexOf("//") + 2);
  }

  /** Changes the pairs of a request's head in place. */
  rewriteRequest(pairs: string[]): void {
    const name = this.#getHostName();
    if (name === undefined) return;
    const publicHost = findValue(pairs, "host");
    replaceValues(pairs, (header, value) => {
      if (header === "host") return name;
      if (this.#mode !== "rewrite" || publicHost === undefined) return value;
      const namesOrigin = header === "origin" || header === "referer";
      return namesOrigin ? replaceOrigin(value, publicHost, this.#localOrigin) : value;
    });
  }

  /** The same for an answer: a redirect to the local server itself leads back to the public name. */
  rewriteResponse(pairs: string[], publicOrigin: string): void {
    if (this.#mode !== "rewrite") return;
    replaceValues(pairs, (name, value) => {
      if (name.toLowerCase() !== "location") return value;
      const rest = value.slice(this.#localOrigin.length);
      const isLocal = value.startsWith(this.#localOrigin) && /^([/?#]|$)/.test(rest);
      return isLocal ? publicOrigin + rest : value;
    });
  }

  /** Whether an answer's first bytes should be shown to `refusedBy`. */
  mayBeRefusal(status: number): boolean {
    return this.#mode === "auto" && (status === 403 || status === 400);
  }

  /** @returns true when the answer is a refusal of the name: from now on it is rewritten. */
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

function findValue(pairs: string[], name: string): string | undefined {
  for (const [candidate, value] of headerPairs(pairs)) if (candidate === name) return value;
  return undefined;
}

function replaceOrigin(value: string, publicHost: string, localOrigin: string): string {
  for (const scheme of ["http://", "https://"]) {
    const origin = scheme + publicHost;
    const rest = value.slice(origin.length);
    if (value.startsWith(origin) && /^(\/|$)/.test(rest)) return localOrigin + rest;
  }
  return value;
}
