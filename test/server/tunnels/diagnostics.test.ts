/** What `underpass doctor` asks: the presented token, and a connection that stores nothing. */
import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import {
  DIAGNOSTIC_BYTES_MAX,
  DIAGNOSTIC_MESSAGE_MAX_BYTES,
  DIAGNOSTIC_TEXT_MAX_CHARS,
  type PresentedToken,
} from "../../../protocol/schemas/tunnels/diagnostics.ts";
import { SERVICE_VERSION } from "../../../protocol/version.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { PROTOCOL_VERSION, SUBPROTOCOL } from "../../../protocol/wire/frames.ts";
import {
  createCaller,
  mintToken,
  startApi,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

const getToken = (bearer: string) =>
  createCaller(api.server, { authorization: `Bearer ${bearer}` }).get<PresentedToken & ErrorBody>(
    "/agent/token",
  );

async function connect(bearer: string | undefined, protocol = SUBPROTOCOL) {
  const headers = bearer === undefined ? {} : { authorization: `Bearer ${bearer}` };
  const url = `ws://127.0.0.1:${api.server.port}/agent/diagnostics`;
  const socket = new WebSocket(url, protocol, { headers });
  const messages: string[] = [];
  const closed = once(socket, "close") as Promise<[number, Buffer]>;
  socket.on("message", (data: Buffer, isBinary) =>
    messages.push(isBinary ? `${data.length} bytes` : data.toString()),
  );
  await Promise.race([once(socket, "message"), closed]);
  return {
    socket,
    messages,
    async next(): Promise<string | undefined> {
      await Promise.race([once(socket, "message"), closed]);
      return messages.at(-1);
    },
    /** The code and the reason of its Close. */
    async getClose(): Promise<[number, string]> {
      const [code, reason] = await closed;
      return [code, reason.toString()];
    },
  };
}

describe("GET /agent/token", () => {
  test("describes the token that it is called with, also a restricted one", async () => {
    const restricted = { allowedSubdomains: ["doctor-*"], tunnelQuota: 3 };
    const minted = await mintToken(owner, restricted);
    await owner.put(`/tokens/${minted.nonce}/budget`, { monthlyBudgetUsdCents: 700 });
    const { status, body } = await getToken(minted.wireBytes);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      nonce: minted.nonce,
      kind: "agent",
      ...restricted,
      monthlyBudgetUsdCents: 700,
      spentUsdCents: 0,
      expiresAt: minted.expiresAt,
      organization: {
        id: owner.orgId,
        plan: expect.stringMatching(/^(free|pro|team|enterprise)$/),
      },
      approved: true,
      overBudget: false,
      relays: expect.any(Array),
    });
    expect(JSON.stringify(body)).not.toContain(minted.wireBytes.slice(0, 40));
  });

  test("says when the budget is used up or the organization waits for approval", async () => {
    const other = await api.owner();
    const { nonce, wireBytes } = await mintToken(other);
    await other.put(`/tokens/${nonce}/budget`, { monthlyBudgetUsdCents: 0 });
    await api.sql("update organizations set approval_status = 'pending' where id = $1", [
      other.orgId,
    ]);
    expect((await getToken(wireBytes)).body).toMatchObject({ approved: false, overBudget: true });
  });

  test("refuses a token that is revoked, unreadable or not an agent's", async () => {
    const { nonce, wireBytes } = await mintToken(owner);
    await owner.delete(`/tokens/${nonce}`);
    expect(await getToken(wireBytes)).toMatchObject({
      status: 401,
      body: { error: "unauthorized", message: "The token was revoked." },
    });
    for (const bearer of ["invalid", owner.accessToken]) {
      expect((await getToken(bearer)).status).toBe(401);
    }
  });
});

describe("GET /agent/diagnostics", () => {
  test("carries messages in both directions and registers no tunnel", async () => {
    const { wireBytes } = await mintToken(owner);
    const connection = await connect(wireBytes);
    expect(connection.messages).toEqual([
      JSON.stringify({ protocol: PROTOCOL_VERSION, server: SERVICE_VERSION }),
    ]);
    connection.socket.send(JSON.stringify({ bytes: 0 }));
    expect(await connection.next()).toBe("0 bytes");
    connection.socket.send(JSON.stringify({ bytes: DIAGNOSTIC_MESSAGE_MAX_BYTES }));
    expect(await connection.next()).toBe("65536 bytes");
    connection.socket.send(Buffer.alloc(1000));
    expect(await connection.next()).toBe('{"received":1000}');
    connection.socket.send(Buffer.alloc(24));
    expect(await connection.next()).toBe('{"received":1024}');
    connection.socket.close(1000);
    expect(await connection.getClose()).toEqual([1000, ""]);
    const { body } = await owner.get<unknown[]>("/tunnels");
    expect(body).toEqual([]);
    expect(api.server.output).not.toContain("Uncaught exception");
  });

  test("is bounded in each direction and refuses other messages", async () => {
    const { wireBytes } = await mintToken(owner);
    const whole = DIAGNOSTIC_BYTES_MAX / DIAGNOSTIC_MESSAGE_MAX_BYTES;
    const [down, up, wrong, long] = await Promise.all([
      connect(wireBytes),
      connect(wireBytes),
      connect(wireBytes),
      connect(wireBytes),
    ]);
    for (let at = 0; at <= whole; at++) {
      down.socket.send(JSON.stringify({ bytes: DIAGNOSTIC_MESSAGE_MAX_BYTES }));
      up.socket.send(Buffer.alloc(DIAGNOSTIC_MESSAGE_MAX_BYTES));
    }
    wrong.socket.send(JSON.stringify({ bytes: DIAGNOSTIC_MESSAGE_MAX_BYTES + 1 }));
    long.socket.send(JSON.stringify({ bytes: 1 }).padEnd(DIAGNOSTIC_TEXT_MAX_CHARS + 1));
    const tooMany = [CLOSE.protocol_error, "protocol_error: too many bytes"];
    expect(await down.getClose()).toEqual(tooMany);
    expect(await up.getClose()).toEqual(tooMany);
    const unreadable = [CLOSE.protocol_error, "protocol_error: unreadable message"];
    expect([await wrong.getClose(), await long.getClose()]).toEqual([unreadable, unreadable]);
    expect(down.messages.filter((message) => message === "65536 bytes")).toHaveLength(whole);
  });

  test("is closed with the reason for a caller without a valid token", async () => {
    const { nonce, wireBytes } = await mintToken(owner);
    await owner.delete(`/tokens/${nonce}`);
    expect(await (await connect(undefined)).getClose()).toEqual([
      CLOSE.unauthorized,
      "unauthorized: a token is required",
    ]);
    expect(await (await connect(wireBytes)).getClose()).toEqual([
      CLOSE.unauthorized,
      "unauthorized: the token was revoked",
    ]);
    expect((await (await connect(wireBytes, "underpass.v9")).getClose())[0]).toBe(
      CLOSE.unsupported_version,
    );
    expect((await api.anonymous.get("/agent/diagnostics")).status).toBe(401);
    expect((await owner.get("/agent/diagnostics")).status).toBe(426);
  });

  test("an organization has a bounded number of them", async () => {
    const { wireBytes } = await mintToken(await api.owner());
    const all = await Promise.all(Array.from({ length: 22 }, () => connect(wireBytes)));
    const refused = all.filter(({ messages }) => messages.length === 0);
    expect(refused.length).toBeGreaterThanOrEqual(1);
    expect((await refused[0]!.getClose())[1]).toMatch(/^quota_exceeded: .* seconds$/);
    for (const { socket } of all) socket.terminate();
  });
});
