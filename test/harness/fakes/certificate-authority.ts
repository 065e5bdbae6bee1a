/**
 * A certificate authority that speaks ACME (RFC 8555) with the challenge `http-01`. It verifies signatures, nonces and challenges,
 * and issues certificates that its own root signs.
 */
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { Pkcs10CertificateRequest } from "@peculiar/x509";
import { calculateJwkThumbprint, flattenedVerify, importJWK, type JWK } from "jose";
import { exchange } from "../tunnel/raw-http.ts";
import { createCertificate } from "./certificate.ts";

/** RFC 5280, appendix A.1. */
const COMMON_NAME_MAX_CHARS = 64;

export interface CertificateAuthority extends AsyncDisposable {
  directoryUrl: string;
  /** The root's certificate in PEM. */
  root: string;
  /** The names of all orders, in their order. */
  orders: string[];
  /** Names for which it issues nothing. */
  refused: Set<string>;
  /** How long its certificates are valid. */
  lifetimeMs: number;
}

interface Order {
  name: string;
  token: string;
  status: "pending" | "ready" | "valid" | "invalid";
  certificate: string;
}

interface Answer {
  status?: number;
  location?: string;
  body: unknown;
}

/** @param validationPort where it sends the requests that verify a host, instead of port 80. */
export async function startCertificateAuthority(
  validationPort: number,
): Promise<CertificateAuthority> {
  const root = createCertificate({ commonName: "Test Root" });
  const nonces = new Set<string>();
  const accounts: JWK[] = [];
  const orders: Order[] = [];

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const nonce = randomUUID().replaceAll("-", "");
    nonces.add(nonce);
    response.setHeader("Replay-Nonce", nonce);
    const path = request.url ?? "/";
    const answered =
      path === "/directory" || request.method === "HEAD" ? describe() : await act(path, request);
    const { status = 200, location, body } = answered;
    if (location !== undefined) response.setHeader("Location", location);
    const isText = typeof body === "string";
    response.setHeader(
      "Content-Type",
      isText ? "application/pem-certificate-chain" : "application/json",
    );
    response.writeHead(status);
    response.end(isText ? body : JSON.stringify(body));
  }

  function describe(): Answer {
    const paths = { newNonce: "nonce", newAccount: "account", newOrder: "order" };
    return {
      body: Object.fromEntries(Object.entries(paths).map(([key, path]) => [key, `${url}/${path}`])),
    };
  }

  async function act(path: string, request: IncomingMessage): Promise<Answer> {
    const { account, payload } = await verify(path, request);
    if (path === "/account")
      return { status: 201, location: `${url}/account/${account}`, body: { status: "valid" } };
    if (path === "/order") return createOrder(payload);
    const [, resource, number] = path.split("/");
    const order = orders[Number(number)]!;
    switch (resource) {
      case "order":
        return { body: showOrder(order) };
      case "authorization":
        return { body: showAuthorization(order) };
      case "challenge":
        if (order.status === "pending") await validate(order, accounts[account]!);
        return { body: showChallenge(order) };
      case "finalize":
        finalize(order, String(payload.csr));
        return { body: showOrder(order) };
      case "certificate":
        return { body: `${order.certificate}${root.cert}` };
      default:
        throw new Error(`there is no ${path}`);
    }
  }

  /** Every request is signed by the account's key, with a nonce that is used once (section 6). */
  async function verify(path: string, request: IncomingMessage) {
    const jws = (await json(request)) as { protected: string; payload: string; signature: string };
    const header = JSON.parse(Buffer.from(jws.protected, "base64url").toString()) as {
      jwk?: JWK;
      kid?: string;
      nonce: string;
      url: string;
    };
    if (!nonces.delete(header.nonce) || header.url !== `${url}${path}`)
      throw new Error("not a valid request");
    const account = header.jwk
      ? accounts.push(header.jwk) - 1
      : Number(header.kid?.split("/").at(-1));
    await flattenedVerify(jws, await importJWK(accounts[account]!, "ES256"));
    const text = Buffer.from(jws.payload, "base64url").toString();
    return { account, payload: (text === "" ? {} : JSON.parse(text)) as Record<string, unknown> };
  }

  function createOrder({ identifiers }: Record<string, unknown>): Answer {
    const [{ value: name }] = identifiers as [{ value: string }];
    authority.orders.push(name);
    if (authority.refused.has(name)) {
      const type = "urn:ietf:params:acme:error:rejectedIdentifier";
      return { status: 403, body: { type, detail: "this name is refused" } };
    }
    const order: Order = { name, token: randomUUID(), status: "pending", certificate: "" };
    const index = orders.push(order) - 1;
    return { status: 201, location: `${url}/order/${index}`, body: showOrder(order) };
  }

  async function validate(order: Order, account: JWK): Promise<void> {
    const { name, token } = order;
    const request = `GET /.well-known/acme-challenge/${token} HTTP/1.1\r\nHost: ${name}\r\n\r\n`;
    const { body } = await exchange(validationPort, request);
    const expected = `${token}.${await calculateJwkThumbprint(account)}`;
    order.status = body.toString() === expected ? "ready" : "invalid";
  }

  function finalize(order: Order, csr: string): void {
    const request = new Pkcs10CertificateRequest(Buffer.from(csr, "base64url"));
    const [subject = ""] = request.subjectName.getField("CN");
    if (subject.length > COMMON_NAME_MAX_CHARS) throw new Error("the common name is too long");
    const subjectKey = new Uint8Array(request.publicKey.rawData);
    const validToMs = Date.now() + authority.lifetimeMs;
    const { name: commonName } = order;
    order.certificate = createCertificate({ commonName, subjectKey, issuer: root, validToMs }).cert;
    order.status = "valid";
  }

  const find = (order: Order) => orders.indexOf(order);
  const showIdentifier = ({ name }: Order) => ({ type: "dns", value: name });
  const showOrder = (order: Order) => ({
    status: order.status,
    identifiers: [showIdentifier(order)],
    authorizations: [`${url}/authorization/${find(order)}`],
    finalize: `${url}/finalize/${find(order)}`,
    ...(order.status === "valid" && { certificate: `${url}/certificate/${find(order)}` }),
  });
  const getAuthorizationStatus = ({ status }: Order) =>
    status === "pending" || status === "invalid" ? status : "valid";
  const showChallenge = (order: Order) => ({
    type: "http-01",
    url: `${url}/challenge/${find(order)}`,
    token: order.token,
    status: getAuthorizationStatus(order),
  });
  const showAuthorization = (order: Order) => ({
    status: getAuthorizationStatus(order),
    identifier: showIdentifier(order),
    challenges: [showChallenge(order)],
  });

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.writeHead(400, { "Content-Type": "application/problem+json" });
      response.end(
        JSON.stringify({ type: "urn:ietf:params:acme:error:malformed", detail: String(error) }),
      );
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const authority: CertificateAuthority = {
    directoryUrl: `${url}/directory`,
    root: root.cert,
    orders: [],
    refused: new Set(),
    lifetimeMs: 90 * 24 * 3_600_000,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return authority;
}
