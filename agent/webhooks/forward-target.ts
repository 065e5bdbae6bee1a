/** `--forward`: the local URL that deliveries are posted to, with its path. */
import { parseUnixSocket } from "../local-server/unix-socket.ts";
import { createSocketTarget, getWebOrigin, parseTarget, type Target } from "../origin/target.ts";

export interface ForwardTarget {
  server: Target;
  /** Includes the query. */
  path: string;
  /** As it is printed. */
  url: string;
}

/**
 * Accepts `3000`, `3000/hook`, `localhost:3000/hook?of=shop`, `http://host/hook`, and a Unix socket with or without a path after
 * it: `unix:/run/app.sock:/hook`.
 * @returns null for anything else. @throws UsageError when no server can listen on the socket.
 */
export function parseForwardTarget(text: string): ForwardTarget | null {
  const given = text.trim();
  const [, socket, socketRest = ""] = /^(unix:.*?)(?::(\/.*))?$/i.exec(given) ?? [];
  if (socket !== undefined) return parseSocketTarget(socket, socketRest);
  const [, origin, rest = ""] = /^([a-z][a-z0-9+.-]*:\/\/[^/?#]*|[^/?#]*)(.*)$/i.exec(given) ?? [];
  const server = origin === undefined ? null : parseTarget(origin);
  const path = server && parsePath(rest, server);
  if (!server || path === null) return null;
  return { server, path, url: server.origin + path };
}

function parseSocketTarget(socket: string, rest: string): ForwardTarget | null {
  const socketPath = parseUnixSocket(socket);
  const server = socketPath === null ? null : createSocketTarget(socketPath);
  const path = server && parsePath(rest, server);
  if (!server || path === null) return null;
  return { server, path, url: rest === "" ? server.origin : `${server.origin}:${path}` };
}

/** @param rest empty, or from `/` or `?` on. @returns null for a fragment, which can't be sent. */
function parsePath(rest: string, server: Target): string | null {
  if (rest.includes("#")) return null;
  const { pathname, search } = new URL(getWebOrigin(server) + rest);
  return pathname + search;
}
