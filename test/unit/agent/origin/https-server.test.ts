/** A local server that speaks https: what the user is told when the agent can't use it as it was named. */
import { once } from "node:events";
import { createServer as createPlainServer } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OriginServer } from "../../../../agent/origin/origin-server.ts";
import { parseTarget } from "../../../../agent/origin/target.ts";
import { FLAG } from "../../../../protocol/wire/frames.ts";
import { createCertificate } from "../../../harness/fakes/certificate.ts";
import { startScriptedTunnel } from "../../../harness/tunnel/scripted-tunnel.ts";

let server: Server;
let port: number;

beforeAll(async () => {
  server = createServer(createCertificate(), (_, response) => response.end("ok"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  port = (server.address() as AddressInfo).port;
});
afterAll(() => void server.close());

const findConnectProblem = async (target: string, insecureUpstream: boolean) => {
  const events = {} as never;
  const options = { "insecure-upstream": insecureUpstream };
  const origin = new OriginServer(parseTarget(target)!, options, events);
  const problem = await origin.findConnectProblem();
  await origin.close();
  return problem;
};

test("its URL is named when it was given as an http server, after the first request that fails", async () => {
  await using tunnel = await startScriptedTunnel(port);
  const noticed = once(tunnel.agent, "notice");
  tunnel.agent.start();
  const connection = await tunnel.connection();
  connection.request(1, ["GET", "/", "host", "shop.localhost"], FLAG.end);
  expect(await noticed).toEqual([
    `http://127.0.0.1:${port} speaks https, not http; use https://127.0.0.1:${port} with --insecure-upstream`,
  ]);
});

test("a certificate that is not trusted is found before a visitor comes, unless it is accepted", async () => {
  const target = `https://127.0.0.1:${port}`;
  expect(await findConnectProblem(target, false)).toContain("accept it with --insecure-upstream");
  expect(await findConnectProblem(target, true)).toBeNull();
});

test("a local server that speaks http is found when it was given as an https server", async () => {
  const plain = createPlainServer().listen(0, "127.0.0.1");
  await once(plain, "listening");
  const target = `https://127.0.0.1:${(plain.address() as AddressInfo).port}`;
  expect(await findConnectProblem(target, true)).toBe(
    `${target} does not speak TLS; use http:// in the local address`,
  );
  plain.close();
});
