/** The local server that a tunnel would lead to: whether it listens, on which addresses, and whether it answers HTTP. */
import { lookup, type LookupAddress } from "node:dns";
import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP } from "node:net";
import { TLSSocket } from "node:tls";
import { promisify } from "node:util";
import type { Target } from "../origin/target.ts";
import { explainError } from "../error-message.ts";
import { tryToConnect } from "../local-server/http-connector.ts";
import { explainSocketError } from "../local-server/unix-socket.ts";
import { findErrorCode, ok, problem, warning, type Outcome } from "./check.ts";
import { openTcp } from "./route.ts";
import { formatHostAndPort, stripBrackets } from "../../shared/hosts.ts";
import { PROGRAM } from "../program.ts";

const LOOPBACK = ["127.0.0.1", "::1"];
const ADDRESSES_MAX = 8;
const CONNECT_MAX_MS = 1_500;
const ANSWER_MAX_MS = 2_000;

/** Where the server accepts connections. */
type Address = { host: string; port: number } | { socketPath: string };

/** A local server that accepts connections. */
interface ListeningServer {
  target: Target;
  address: Address;
  /** What the check does. */
  tried: string;
  /** `it listens on 127.0.0.1:3000` */
  where: string;
}

export async function checkLocalServer(target: Target, signal: AbortSignal): Promise<Outcome> {
  const { host, port, origin, socketPath } = target;
  const tried = `connecting to ${origin}, and GET /`;
  if (socketPath !== undefined) return checkSocket(tried, target, socketPath, signal);
  const addresses = await findAddresses(stripBrackets(host));
  if (addresses === null) {
    return problem(tried, `the name ${host} does not exist`, "Check the host's name.");
  }
  const attempts = await Promise.all(
    addresses.map(async (address) => ({
      address,
      isOpen: await isListening(address, port, signal),
    })),
  );
  const open = attempts.filter(({ isOpen }) => isOpen).map(({ address }) => address);
  const [first] = open;
  if (first === undefined) {
    return problem(
      tried,
      `nothing listens on ${addresses.map((address) => formatHostAndPort(address, port)).join(" or ")}`,
      "Start the local server, or check its port.",
    );
  }
  const listening = open.map((address) => formatHostAndPort(address, port)).join(" and ");
  const where = `it listens on ${listening}${await describeLocalhost(host, open)}`;
  return checkAnswer({ target, address: { host: first, port }, tried, where }, signal);
}

async function checkSocket(
  tried: string,
  target: Target,
  socketPath: string,
  signal: AbortSignal,
): Promise<Outcome> {
  const error = await tryToConnect(target, { insecureUpstream: false });
  if (!error)
    return checkAnswer({ target, address: { socketPath }, tried, where: "it listens" }, signal);
  const known = explainSocketError(findErrorCode(error), target.origin);
  if (!known) return problem(tried, explainError(error), "Check the path of the socket.");
  const advice = known.advice[0]!.toUpperCase() + known.advice.slice(1);
  return problem(tried, known.problem, `${advice}.`);
}

async function checkAnswer(server: ListeningServer, signal: AbortSignal): Promise<Outcome> {
  const { target, address, tried, where } = server;
  const answer = await requestRoot(target, address, signal);
  if (typeof answer === "object") {
    const { status, untrusted } = answer;
    const result = `${where} and answers HTTP (${status})`;
    if (untrusted !== null) {
      return problem(
        tried,
        `${result}, but its certificate is not trusted (${untrusted})`,
        `Accept the certificate: ${PROGRAM} http ${target.origin} --insecure-upstream`,
      );
    }
    if (status < 500) return ok(tried, result);
    return warning(tried, result, "The local server reports an error: look into its log.");
  }
  switch (answer) {
    case "no_answer":
      return warning(
        tried,
        `${where} but does not answer GET / within ${ANSWER_MAX_MS / 1000} s`,
        "It may be starting, or be stuck. Visitors wait just as long.",
      );
    case "no_http":
      return checkOtherProtocol(server, signal);
  }
}

/** Finds out whether the server speaks HTTP with TLS instead of without, or the other way round. */
async function checkOtherProtocol(
  { target, address, tried, where }: ListeningServer,
  signal: AbortSignal,
): Promise<Outcome> {
  const other: Target = { ...target, scheme: target.scheme === "http" ? "https" : "http" };
  // The agent speaks no TLS over a Unix socket.
  const answer = "socketPath" in address ? "no_http" : await requestRoot(other, address, signal);
  if (typeof answer === "object") {
    const url = `${other.scheme}://${target.host}:${target.port}`;
    return problem(
      tried,
      `${where}, but speaks ${other.scheme} and not ${target.scheme}`,
      `Give the agent its URL: ${PROGRAM} http ${url}`,
    );
  }
  return problem(
    tried,
    `${where}, but does not speak HTTP`,
    `For other protocols open a TCP tunnel: ${PROGRAM} tcp ${"socketPath" in address ? target.origin : target.port}`,
  );
}

/** The agent tries both loopback addresses, but other programs may not: the resolver's answer is worth knowing. */
async function describeLocalhost(host: string, open: string[]): Promise<string> {
  if (host !== "localhost") return "";
  const resolved = await resolve(host).catch(() => []);
  const isReached = resolved.some(({ address }) => open.includes(address));
  if (resolved.length === 0 || isReached) return "";
  const named = resolved.map(({ address }) => address).join(", ");
  return ` (this machine resolves localhost to ${named} only; the agent tries both)`;
}

/** @returns null when the name does not exist. */
async function findAddresses(host: string): Promise<string[] | null> {
  if (host === "localhost") return LOOPBACK;
  try {
    return (await resolve(host)).map(({ address }) => address).slice(0, ADDRESSES_MAX);
  } catch {
    return null;
  }
}

function resolve(host: string): Promise<LookupAddress[]> {
  return promisify(lookup)(host, { all: true });
}

async function isListening(address: string, port: number, signal: AbortSignal): Promise<boolean> {
  try {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(CONNECT_MAX_MS)]);
    (await openTcp(address, port, bounded)).destroy();
    return true;
  } catch {
    return false;
  }
}

interface RootAnswer {
  status: number;
  /** Why TLS does not trust the certificate; null without TLS, or when it does. */
  untrusted: string | null;
}

/** @returns the answer to GET /, or why there is none. */
function requestRoot(
  { scheme, host, port }: Target,
  address: Address,
  signal: AbortSignal,
): Promise<RootAnswer | "no_answer" | "no_http"> {
  const send = scheme === "https" ? requestHttps : requestHttp;
  const timeout = AbortSignal.timeout(ANSWER_MAX_MS);
  return new Promise((settle) => {
    const request = send({
      ...address,
      path: "/",
      headers: { host: `${host}:${port}`, "user-agent": "underpass-doctor" },
      agent: false,
      signal: AbortSignal.any([signal, timeout]),
      servername: isIP(stripBrackets(host)) ? "" : host,
      // The certificate is checked below, so that another protocol is told apart from a certificate that is not trusted.
      rejectUnauthorized: false,
    });
    request.once("response", (response: IncomingMessage) => {
      const { socket, statusCode: status = 0 } = response;
      response.destroy();
      const isTrusted = !(socket instanceof TLSSocket) || socket.authorized;
      settle({ status, untrusted: isTrusted ? null : getTrustErrorCode(socket) });
    });
    request.on("error", (error) => {
      const isLate = timeout.aborted || findErrorCode(error) === "ABORT_ERR";
      settle(isLate ? "no_answer" : "no_http");
    });
    request.end();
  });
}

/** `DEPTH_ZERO_SELF_SIGNED_CERT`. The types of Node.js declare an Error, but it is the code as a text. */
function getTrustErrorCode(socket: TLSSocket): string {
  const error: unknown = socket.authorizationError;
  return typeof error === "string" ? error : findErrorCode(error);
}
