/** `--forward`: the local URL that deliveries are posted to, with its path. */
import { parseTarget, type Target } from "../origin/target.ts";

export interface ForwardTarget {
  server: Target;
  /** Includes the query. */
  path: string;
  /** As it is printed. */
  url: string;
}

/** Accepts `3000`, `3000/hook`, `localhost:3000/hook?of=shop`, `http://host/hook`. @returns null for anything else. */
export function parseForwardTarget(text: string): ForwardTarget | null {
  const [, origin, rest] =
    /^([a-z][a-z0-9+.-]*:\/\/[^/?#]*|[^/?#]*)([^#]*)$/i.exec(text.trim()) ?? [];
  const server = origin === undefined ? null : parseTarget(origin);
  if (!server || rest === undefined || !URL.canParse(rest, server.origin)) return null;
  const { href, pathname, search } = new URL(rest, server.origin);
  return { server, path: pathname + search, url: href };
}
