/** A server with `REQUIRE_ORG_APPROVAL`, and the statements for its operator in docs/operators/operations.md. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Me } from "../../../protocol/schemas/accounts/accounts.ts";
import type { SetupResult } from "../../../protocol/schemas/accounts/devices.ts";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { ROOT } from "../../../self-host/build/build.ts";
import {
  getSocket,
  mintToken,
  newEmail,
  startApi,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { createNetwork, newKey } from "../../harness/server/private-networks.ts";
import { RELAY_SECRET } from "../../harness/server/server-kinds.ts";
import { RelayLink } from "../../harness/server/relay-link.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi({ shared: false, env: { REQUIRE_ORG_APPROVAL: "true", RELAY_SECRET } });
});
afterAll(() => api.stop());

/** @returns the statements of the part about approving, in their order. */
function readStatements(): string[] {
  const operations = readFileSync(join(ROOT, "docs/operators/operations.md"), "utf8");
  const [, rest = ""] = operations.split("## Approving organizations\n");
  const [part = ""] = rest.split("\n## ");
  return [...part.matchAll(/```sql\n(.*?)```/gs)].map(([, statement]) => statement!);
}

const getOrganization = async (person: Pick<Person, "get">) =>
  (await person.get<Me>("/auth/me")).body.active_org;

/** Everything that requires the approval. @returns the outcome and the message of each. */
async function tryAll(person: Person): Promise<[outcome: unknown, message: string][]> {
  const { wireBytes } = await mintToken(person);
  const agent = await api.connectAgent(wireBytes, { port: 3000 });
  const network = await createNetwork(person);
  const server = { server_public_key: newKey(), server_listen_port: 51820 };
  const email = newEmail();
  const replies = [
    await person.post<ErrorBody>("/tunnels", { localPort: 1, protocol: "tcp" }),
    await person.put<ErrorBody>(`/private-networks/${network.id}/server`, server),
    await person.post<ErrorBody>(`/orgs/${person.orgId}/invitations`, { email, role: "viewer" }),
  ];
  return [
    [agent.code, agent.reason!],
    ...replies.map(({ status, body }) => [status, body.message] as [number, string]),
  ];
}

test("the organization of the server's owner needs no approval", async () => {
  const { body } = await api.anonymous.post<SetupResult>("/setup", { code: api.server.setupCode });
  const owner = await api.logIn(body.email, body.password!);
  expect(await getOrganization(owner)).toMatchObject({ approval_status: "approved" });
  expect(
    (await owner.post<{ approval_status: string }>("/orgs", { name: "Other" })).body,
  ).toMatchObject({
    approval_status: "pending",
  });
});

test("an organization waits until the operator runs the documented statement", async () => {
  const [list, approve, ...others] = readStatements();
  expect(others).toEqual([]);
  const person = await api.owner();
  const { slug } = await getOrganization(person);
  expect(await api.sql(list!)).toContainEqual(
    expect.objectContaining({ slug, email: person.email }),
  );
  await api.sql(approve!.replace("'example'", `'${slug}'`));
  expect(await api.sql(list!)).not.toContainEqual(expect.objectContaining({ slug }));
  const { wireBytes } = await mintToken(person);
  getSocket(await api.connectAgent(wireBytes, { port: 3000 })).terminate();
});

test("an organization is told whether it waits for approval or was rejected", async () => {
  using _relay = await RelayLink.connect(api.server, { firstPort: 40_001, lastPort: 40_020 });
  const person = await api.owner();
  const { slug } = await getOrganization(person);
  const waiting = "The organization is waiting for approval by the operator of this server.";
  expect(await tryAll(person)).toEqual([
    [
      CLOSE.forbidden,
      "forbidden: the organization is waiting for approval [organization_not_approved]",
    ],
    ...Array.from({ length: 3 }, () => [403, waiting]),
  ]);

  const [, approve] = readStatements();
  await api.sql(approve!.replace("'approved'", "'rejected'").replace("'example'", `'${slug}'`));
  const rejected = "The operator of this server did not approve the organization.";
  expect(await tryAll(person)).toEqual([
    [CLOSE.forbidden, "forbidden: the organization was not approved [organization_not_approved]"],
    ...Array.from({ length: 3 }, () => [403, rejected]),
  ]);
});
