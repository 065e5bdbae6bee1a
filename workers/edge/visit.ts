/**
 * A visitor's request: host in, answer out. The steady state is a look-up in this isolate's memory and one
 * call to one object, to which the request is passed as it is and from which the answer streams.
 */
import { AGENT_HOST } from "../../durable-objects/tunnel/admission.ts";
import { ERROR_HEADER, isErrorCode } from "../../protocol/errors.ts";
import type { Env } from "../env.ts";
import { tunnelObject } from "../objects.ts";
import { hostOf, routeNameOf } from "../hosts.ts";
import { errorPage } from "./pages.ts";
import { forget, tunnelFor } from "./routes.ts";

/** Above this, none of our own refusals exist; below 404 neither, so that most answers are not looked at. */
const REFUSAL_MIN_STATUS = 404;

/** @param authority what the request's Host header says, as it came. */
export async function visit(request: Request, env: Env, authority: string): Promise<Response> {
  const host = hostOf(authority);
  if (host === null || host === AGENT_HOST) return errorPage(request, "invalid_host");
  const routeName = routeNameOf(host, String(env.SERVICE_DOMAIN ?? "localhost").toLowerCase());
  if (routeName === null) return errorPage(request, "tunnel_not_found");

  for (let asked = 1; ; asked += 1) {
    const tunnelId = await tunnelFor(env, routeName);
    if (tunnelId === null) return errorPage(request, "tunnel_not_found");
    const answer = await forward(request, env, tunnelId);
    const code = refusalCodeOf(answer);
    if (code === null) return answer;
    // The tunnel is gone, and its name may have a new one that this isolate has not heard of.
    if (code === "tunnel_not_found") forget(routeName);
    if (code !== "tunnel_not_found" || asked === 2) return errorPage(request, code, answer.headers);
  }
}

/** A restarted object loses the call in flight; what can't do anything twice is sent once more. */
async function forward(request: Request, env: Env, tunnelId: string): Promise<Response> {
  try {
    return await tunnelObject(env, tunnelId).fetch(request);
  } catch (cause) {
    const repeatable =
      request.body === null && (request.method === "GET" || request.method === "HEAD");
    if (request.signal.aborted) throw cause;
    console.warn(
      JSON.stringify({
        level: "warn",
        event: "tunnel_call_failed",
        tunnelId,
        cause: String(cause),
      }),
    );
    if (!repeatable)
      return new Response(null, { status: 502, headers: { [ERROR_HEADER]: "agent_offline" } });
    return tunnelObject(env, tunnelId).fetch(request);
  }
}

function refusalCodeOf(answer: Response) {
  if (answer.status < REFUSAL_MIN_STATUS) return null;
  const code = answer.headers.get(ERROR_HEADER);
  return code !== null && isErrorCode(code) ? code : null;
}
