/** The server's certificate as this machine sees it, which a proxy that inspects TLS replaces. */
import { isIP } from "node:net";
import {
  connect as connectTls,
  rootCertificates,
  type DetailedPeerCertificate,
  type PeerCertificate,
  type TLSSocket,
} from "node:tls";
import { X509Certificate } from "node:crypto";
import { explainError } from "../error-message.ts";
import { DAY_MS } from "../../shared/time.ts";
import { findErrorCode, ok, problem, skipped, warning, type Outcome } from "./check.ts";
import { getHost, getPort } from "../outgoing/address.ts";
import { openThroughProxy } from "../outgoing/proxy.ts";
import type { Route } from "./route.ts";

const EXPIRES_SOON_MS = 3 * DAY_MS;

export async function checkTls(route: Route, signal: AbortSignal): Promise<Outcome<Route>> {
  const { server } = route;
  if (server.protocol === "http:") {
    return skipped("the server's address begins with http:, so nothing is encrypted", route);
  }
  const tried = `a TLS handshake with ${server.host}`;
  let socket: TLSSocket;
  try {
    socket = await openTls(route, signal);
  } catch (error) {
    return signal.aborted
      ? problem(
          tried,
          "the server does not answer the handshake",
          `A firewall may drop its packets. If the server uses plain HTTP, its address is http://${server.host}.`,
        )
      : describeHandshakeFailure(tried, route, error);
  }
  const certificate = socket.getPeerCertificate(true);
  const version = socket.getProtocol() ?? "TLS";
  // The declared type is Error; Node.js sets the code as text.
  const failure = socket.authorized ? undefined : String(socket.authorizationError);
  socket.destroy();
  if (failure !== undefined) return describeCertificateFailure(tried, route, failure, certificate);
  const issuer = getName(certificate.issuer);
  const expiresAt = new Date(certificate.valid_to);
  const result = `${version}, certificate of ${issuer} until ${formatDay(expiresAt)}${describeTrust(certificate, route)}`;
  if (expiresAt.getTime() - Date.now() < EXPIRES_SOON_MS) {
    return warning(
      tried,
      `${result}: it expires soon`,
      "The operator of the server must renew it.",
      route,
    );
  }
  return ok(tried, result, route);
}

async function openTls(
  { server, proxy, authorities }: Route,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const host = getHost(server);
  const tunnel = proxy && (await openThroughProxy(proxy, server, authorities, signal));
  return new Promise((resolve, reject) => {
    const socket = connectTls({
      host,
      port: getPort(server),
      ...(tunnel ? { socket: tunnel } : {}),
      ...(authorities ? { secureContext: authorities.secureContext } : {}),
      ...(isIP(host) === 0 ? { servername: host } : {}),
      // The certificate is checked afterwards, so that the user learns whose it is. Nothing is sent on this connection.
      rejectUnauthorized: false,
    });
    signal.addEventListener("abort", () => socket.destroy(signal.reason as Error), { once: true });
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      socket.on("error", () => undefined);
      resolve(socket);
    });
  });
}

function describeHandshakeFailure(
  tried: string,
  { server }: Route,
  error: unknown,
): Outcome<never> {
  const code = findErrorCode(error);
  if (code === "ERR_SSL_WRONG_VERSION_NUMBER" || code === "ERR_SSL_PACKET_LENGTH_TOO_LONG") {
    return problem(
      tried,
      `${server.host} does not speak TLS`,
      `If the server uses plain HTTP, its address is http://${server.host}.`,
    );
  }
  if (code === "ECONNRESET" || code === "EPIPE") {
    return problem(
      tried,
      "the connection was closed during the handshake",
      `A firewall may block the name ${server.hostname}: ask its administrator to allow it.`,
    );
  }
  return problem(
    tried,
    `the handshake failed: ${explainError(error)}`,
    "The server, or a proxy in between, may only support an old TLS version: the agent requires TLS 1.2.",
  );
}

function describeCertificateFailure(
  tried: string,
  { server, authorities }: Route,
  code: string,
  certificate: PeerCertificate,
): Outcome<never> {
  const issuer = getName(certificate.issuer);
  switch (code) {
    case "CERT_HAS_EXPIRED":
      return problem(
        tried,
        `the certificate of ${issuer} expired on ${formatDay(new Date(certificate.valid_to))}`,
        "The operator of the server must renew it. If the date is in the future, correct this machine's clock.",
      );
    case "CERT_NOT_YET_VALID":
      return problem(
        tried,
        `the certificate of ${issuer} is valid only from ${formatDay(new Date(certificate.valid_from))}`,
        "Correct this machine's clock.",
      );
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return problem(
        tried,
        `the certificate is for ${formatNames(certificate)}, not for ${server.hostname}`,
        "Check the server's address. If it is right, another server or a login page of this network answers.",
      );
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
      return problem(
        tried,
        `the certificate is self-signed (${issuer})`,
        "If it is your own server, let the agent trust it: pass its certificate with --ca-file /path/to/certificate.pem.",
      );
    default:
      return problem(
        tried,
        `the certificate was issued by ${issuer}, which this machine does not trust (${code})`,
        authorities === undefined
          ? `A company proxy or a virus scanner that inspects TLS replaces certificates in this way. Get the CA certificate of ${issuer} as a PEM file, and pass --ca-file /path/to/ca.pem.`
          : `The file of --ca-file has another CA. Get the CA certificate of ${issuer} as a PEM file, and pass that one.`,
      );
  }
}

/** @returns how this machine came to trust the certificate; empty for a public authority. */
function describeTrust(certificate: PeerCertificate, { authorities }: Route): string {
  const root = findRoot(certificate).fingerprint256;
  if (rootFingerprints().has(root)) return "";
  const given = new Set(authorities?.certificates.map(getFingerprint));
  if (given.has(root)) return ", trusted through --ca-file";
  return ", trusted through NODE_EXTRA_CA_CERTS or this system's store";
}

function findRoot(certificate: PeerCertificate): PeerCertificate {
  let last = certificate;
  // The root is its own issuer. A chain has few members; the bound only protects from a circle.
  for (let depth = 0; depth < 10; depth++) {
    const issuer =
      "issuerCertificate" in last ? (last as DetailedPeerCertificate).issuerCertificate : undefined;
    if (!issuer || issuer === last) break;
    last = issuer;
  }
  return last;
}

function getFingerprint(pem: string): string {
  return new X509Certificate(pem).fingerprint256;
}

let fingerprints: Set<string> | undefined;

/** The fingerprints of the public certificate authorities that Node.js trusts by itself. */
function rootFingerprints(): Set<string> {
  fingerprints ??= new Set(rootCertificates.map(getFingerprint));
  return fingerprints;
}

function getName(name: PeerCertificate["issuer"] | undefined): string {
  const parts = [name?.O, name?.CN].flat().filter((part) => part !== undefined);
  return parts.length === 0 ? "an unnamed issuer" : `"${[...new Set(parts)].join(", ")}"`;
}

function formatNames({ subjectaltname, subject }: PeerCertificate): string {
  const names = subjectaltname?.replaceAll(/DNS:|IP Address:/g, "") ?? subject?.CN;
  return (Array.isArray(names) ? names.join(", ") : names) ?? "no name";
}

function formatDay(date: Date): string {
  return Number.isNaN(date.getTime()) ? "an unknown day" : date.toISOString().slice(0, 10);
}
