/** Whether a WebSocket like an agent's passes, with messages in both directions. It registers no tunnel. */
import type { IncomingMessage } from "node:http";
import type WebSocket from "ws";
import { ERROR_HEADER } from "../../protocol/errors.ts";
import { findCloseName } from "../../protocol/wire/close-codes.ts";
import { SUBPROTOCOL } from "../../protocol/wire/frames.ts";
import { parseJson } from "../../shared/json.ts";
import { explainError } from "../error-message.ts";
import { openWebSocket, toWebSocketUrl } from "../websocket.ts";
import { ok, problem, type Outcome } from "./check.ts";
import { DiagnosticConnection } from "./diagnostic-connection.ts";
import { formatBody } from "./http-check.ts";
import type { Route } from "./route.ts";

const BODY_READ_MAX_BYTES = 4_096;

interface SocketState {
  /** The server has refused the agent's version of the protocol. */
  isVersionRefused: boolean;
  /** Open for measurements; null without a valid token. */
  connection: DiagnosticConnection | null;
}

type Attempt =
  | { kind: "open"; socket: WebSocket }
  | { kind: "closed"; code: number; reason: string }
  | { kind: "response"; status: number; errorCode: string | undefined; body: string }
  | { kind: "failed"; message: string; isOpened: boolean };

export async function checkWebSocket(
  route: Route,
  signal: AbortSignal,
): Promise<Outcome<SocketState>> {
  if (route.token === null)
    return describeAttempt(route, await attempt(route, "/agent/connect", signal));
  const diagnosed = await attempt(route, "/agent/diagnostics", signal);
  // An older server does not have this route. Without a token, `/agent/connect` registers no tunnel.
  const isUnknownRoute = diagnosed.kind === "response" && diagnosed.status === 404;
  if (!isUnknownRoute || signal.aborted) return describeAttempt(route, diagnosed);
  return describeAttempt(route, await attempt({ ...route, token: null }, "/agent/connect", signal));
}

async function describeAttempt(route: Route, outcome: Attempt): Promise<Outcome<SocketState>> {
  const tried = `opening a WebSocket to ${route.server.host}, and sending messages both ways`;
  const refused = { isVersionRefused: false, connection: null };
  const { hostname } = route.server;
  switch (outcome.kind) {
    case "open": {
      const connection = new DiagnosticConnection(outcome.socket);
      const tookMs = await connection.measureRoundTrip();
      if (tookMs === null) {
        return problem(
          tried,
          "the upgrade passes, but an answer does not arrive",
          adviseToAllow(hostname),
        );
      }
      return ok(tried, "it opens, and messages pass both ways", {
        isVersionRefused: false,
        connection,
      });
    }
    case "closed": {
      const name = findCloseName(outcome.code);
      if (name === "unsupported_version") {
        return ok(tried, `it opens; the server refuses this agent's version of the protocol`, {
          ...refused,
          isVersionRefused: true,
        });
      }
      if (name === "unauthorized" && route.token === null) {
        return ok(tried, "it opens, and the server's message arrives", refused);
      }
      if (name !== null) {
        return ok(tried, `it opens, and the server answers ${formatClose(outcome)}`, refused);
      }
      return problem(
        tried,
        `it is closed at once (${outcome.code}${outcome.reason === "" ? "" : `: ${outcome.reason}`})`,
        adviseToAllow(hostname),
      );
    }
    case "response":
      return describeResponse(tried, hostname, outcome);
    case "failed":
      return problem(
        tried,
        outcome.isOpened
          ? "the upgrade passes, but no message of the server arrives"
          : `it can't be opened: ${outcome.message}`,
        adviseToAllow(hostname),
      );
  }
}

function formatClose({ code, reason }: { code: number; reason: string }): string {
  return reason === "" ? String(code) : reason;
}

function describeResponse(
  tried: string,
  hostname: string,
  { status, errorCode, body }: Extract<Attempt, { kind: "response" }>,
): Outcome<never> {
  if (errorCode === "upgrade_expected" || errorCode === "unauthorized") {
    return problem(
      tried,
      `the server got the request without its Upgrade header (${status}): a proxy on the way removes it`,
      adviseToAllow(hostname),
    );
  }
  const from = errorCode === undefined ? "something on the way" : "the server";
  return problem(
    tried,
    `${from} answers ${status} instead of opening it: ${formatBody(body)}`,
    errorCode === undefined ? adviseToAllow(hostname) : "Try again in a minute.",
  );
}

function adviseToAllow(hostname: string): string {
  return `Tunnels need WebSockets. Ask the administrator of the proxy or firewall to allow them to ${hostname}, or add ${hostname} to NO_PROXY if it can be reached directly.`;
}

function attempt(route: Route, path: string, signal: AbortSignal): Promise<Attempt> {
  const url = toWebSocketUrl(path, route.server);
  return new Promise((resolve) => {
    const credentials = route.token?.toString("base64url") ?? "";
    const { authorities } = route;
    const options = { followRedirects: false, authorities };
    const socket = openWebSocket(url, SUBPROTOCOL, credentials, options);
    let isOpened = false;
    socket.on("open", () => (isOpened = true));
    socket.once("message", () => resolve({ kind: "open", socket }));
    socket.on("close", (code, reason) =>
      resolve({ kind: "closed", code, reason: reason.toString() }),
    );
    socket.on("unexpected-response", (_request, response) => {
      // From here on, the response is the outcome, even if its body does not arrive in time.
      resolve(readResponse(response).finally(() => socket.terminate()));
    });
    socket.on("error", (error) =>
      resolve({ kind: "failed", message: explainError(error), isOpened }),
    );
    signal.addEventListener("abort", () => {
      resolve({ kind: "failed", message: "no answer in time", isOpened });
      socket.terminate();
    });
  });
}

async function readResponse(response: IncomingMessage): Promise<Attempt> {
  const { statusCode: status = 0, headers } = response;
  const body = await readBody(response);
  return { kind: "response", status, errorCode: headers[ERROR_HEADER]?.toString(), body };
}

/** The message of an error of the API, or the beginning of another body: as much as arrives before the connection ends. */
async function readBody(response: IncomingMessage): Promise<string> {
  let text = "";
  try {
    for await (const chunk of response) {
      text += String(chunk);
      if (text.length > BODY_READ_MAX_BYTES) break;
    }
  } catch {
    // The connection was lost, or was ended because the time has passed.
  }
  const body = parseJson(text);
  const hasMessage = typeof body === "object" && body !== null && "message" in body;
  return hasMessage ? String(body.message) : text;
}
