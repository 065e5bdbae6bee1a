import { afterAll, beforeAll, expect, test } from "vitest";
import { fromBase64, toHex } from "../../../shared/bytes.ts";
import type { Token } from "../../../protocol/schemas/tokens.ts";
import { decodeCapabilityToken } from "../../../workers/identity/tokens/capability-token.ts";
import { mintToken, startApi, type Person, type TestApi } from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

test("minting returns the bytes once, with the documented defaults", async () => {
  const { wireBytes, wireBytesLen, ...shown } = await mintToken(owner, { name: "ci" });
  expect(shown).toEqual({
    id: expect.any(String),
    name: "ci",
    nonce: expect.stringMatching(/^[0-9a-f]{32}$/),
    kind: "agent",
    tunnelQuota: 5,
    bandwidthLimitMbps: 100,
    allowedSubdomains: [],
    projectSlug: null,
    monthlyBudgetUsdCents: null,
    spentUsdCents: 0,
    issuedAt: expect.any(Number),
    expiresAt: shown.issuedAt + 24 * 3600,
    revoked: false,
    createdBy: owner.userId,
    mintedByMasterId: null,
  });
  expect(fromBase64(wireBytes)).toHaveLength(wireBytesLen);

  const listed = await owner.get<Token[]>("/tokens");
  expect(listed.body[0]).toEqual(shown);
  expect(JSON.stringify(listed.body)).not.toContain("wireBytes");
});

test("tokens that are minted within one second are listed newest first", async () => {
  const minter = await api.owner();
  const names = ["first", "second", "third", "fourth", "fifth", "sixth"];
  for (const name of names) await mintToken(minter, { name });
  const listed = await minter.get<Token[]>("/tokens");
  expect(listed.body.map(({ name }) => name)).toEqual(names.toReversed());
});

test("the bytes have the same values as the row", async () => {
  const token = await mintToken(owner, {
    ttlHours: 2,
    allowedSubdomains: ["api-*"],
    bandwidthLimitMbps: 7,
    tunnelQuota: 3,
  });
  const decoded = decodeCapabilityToken(fromBase64(token.wireBytes)!);
  expect(decoded?.payload).toMatchObject({
    kind: "agent",
    allowedSubdomains: ["api-*"],
    bandwidthLimitMbps: 7,
    tunnelQuota: 3,
    project: null,
    issuedAtSeconds: token.issuedAt,
    expiresAtSeconds: token.issuedAt + 2 * 3600,
  });
  expect(toHex(decoded!.payload.nonce)).toBe(token.nonce);
  expect(toHex(decoded!.payload.organizationId)).toBe(owner.orgId.replaceAll("-", ""));
});

test("revoking is shown in the list, and repeating it changes nothing", async () => {
  const { nonce } = await mintToken(owner);
  const replies = [await owner.delete(`/tokens/${nonce}`), await owner.delete(`/tokens/${nonce}`)];
  expect(replies).toMatchObject([{ status: 200, body: { ok: true } }, { status: 200 }]);
  const { body } = await owner.get<Token[]>("/tokens");
  expect(body.find((token) => token.nonce === nonce)?.revoked).toBe(true);
  const events = await api.sql(
    "select 1 from audit_events where action = 'token_revoked' and metadata->>'nonce' = $1",
    [nonce],
  );
  expect(events).toHaveLength(1);
});

test("a member can revoke only their own tokens, an admin all", async () => {
  const member = await api.colleague(owner, "member");
  const admin = await api.colleague(owner, "admin");
  const [own, other] = [await mintToken(member), await mintToken(owner)];
  expect((await member.delete(`/tokens/${own.nonce}`)).status).toBe(200);
  expect((await member.delete(`/tokens/${other.nonce}`)).status).toBe(403);
  expect((await admin.delete(`/tokens/${other.nonce}`)).status).toBe(200);
});

test.each([
  ["no name", {}, "name"],
  ["an empty name", { name: " " }, "name"],
  ["a name with a line break", { name: "a\nb" }, "name"],
  ["a lifetime of zero hours", { name: "x", ttlHours: 0 }, "ttlHours"],
  ["a lifetime of half an hour", { name: "x", ttlHours: 0.5 }, "ttlHours"],
  ["a lifetime that is too long for an exact number", { name: "x", ttlHours: 1e20 }, "ttlHours"],
  ["a lifetime as a string", { name: "x", ttlHours: "24" }, "ttlHours"],
  ["a bandwidth of zero", { name: "x", bandwidthLimitMbps: 0 }, "bandwidthLimitMbps"],
  [
    "more bandwidth than an integer can hold",
    { name: "x", bandwidthLimitMbps: 2 ** 31 },
    "bandwidthLimitMbps",
  ],
  ["a quota of zero", { name: "x", tunnelQuota: 0 }, "tunnelQuota"],
  ["a pattern with a dot", { name: "x", allowedSubdomains: ["a.*"] }, "allowedSubdomains[0]"],
  ["a pattern of no label", { name: "x", allowedSubdomains: ["-x"] }, "allowedSubdomains[0]"],
  ["101 patterns", { name: "x", allowedSubdomains: Array(101).fill("a") }, "allowedSubdomains"],
])("refuses %s", async (_, body, field) => {
  expect(await owner.post("/tokens", body)).toMatchObject({
    status: 400,
    body: { error: "invalid_request", fields: [{ path: field }] },
  });
});

test("a path with an impossible nonce answers 404", async () => {
  for (const nonce of ["x", "0".repeat(31), "0".repeat(32), crypto.randomUUID()]) {
    expect((await owner.delete(`/tokens/${nonce}`)).status).toBe(404);
  }
});
