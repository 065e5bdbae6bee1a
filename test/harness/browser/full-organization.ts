/** An organization with something on every page, whose names and paths a hostile user has chosen. */
import type { DashboardPath } from "../../../protocol/dashboard-paths.ts";
import { createReceiver, deliver } from "../fakes/vendor.ts";
import { mintToken, type Person, type TestApi } from "../server/api.ts";
import { createNetwork, enroll } from "../server/private-networks.ts";
import { waitForCaptures } from "../tunnel/visited-tunnel.ts";
import { serveTunnel } from "./traffic.ts";

/** HTML, and more letters than any column is wide. */
const HOSTILE_NAME = `<img src=x onerror=alert(1)> ${"W".repeat(33)}`;
/** The same, with a right-to-left override. */
const HOSTILE = `<img src=x onerror=alert(1)> \u202egnp.exe ${"W".repeat(25)}`;
const LONG = "W".repeat(60);
const HOSTILE_PATH = `/${encodeURIComponent(HOSTILE)}/${"x".repeat(300)}`;
/** Enough rows to move what is below them. */
const COLLEAGUES = 5;

export interface FullOrganization extends AsyncDisposable {
  owner: Person;
  /** The path of a page; for a path with `:id`, that of one of the organization's resources. */
  getPath: (page: DashboardPath) => string;
  /** Visits the tunnel, once with an error as the response, and delivers a webhook. @returns the id of a captured request. */
  addTraffic: () => Promise<string>;
}

export async function createFullOrganization(api: TestApi): Promise<FullOrganization> {
  const owner = await api.owner();
  for (let count = 0; count < COLLEAGUES; count += 1) await api.colleague(owner, "member");
  const label = `a${crypto.randomUUID().replaceAll("-", "").slice(0, 30)}`;
  const tunnel = await serveTunnel(api, owner, label);
  const receiver = await createReceiver(owner, "code_host", `${HOSTILE_NAME}2`);
  const network = await createNetwork(owner, { name: HOSTILE_NAME });
  await enroll(owner, network.id, { name: HOSTILE_NAME });
  await createNamed(owner, label);
  await spendBudget(api, owner, tunnel.id);

  let visits = 0;
  async function addTraffic(): Promise<string> {
    await tunnel.visit(HOSTILE_PATH);
    await tunnel.visit(`/status/503${HOSTILE_PATH}`);
    await deliver(api.server, receiver, { body: JSON.stringify({ [HOSTILE]: HOSTILE }) });
    visits += 2;
    const [newest] = await waitForCaptures(owner, {}, visits);
    return newest!.id;
  }
  const ids: Partial<Record<DashboardPath, string>> = {
    "/requests/:id": await addTraffic(),
    "/tunnels/:id": tunnel.id,
    "/networks/:id": network.id,
    "/receivers/:id": receiver.id,
  };
  return {
    owner,
    getPath: (page) => page.replace(":id", ids[page] ?? ""),
    addTraffic,
    [Symbol.asyncDispose]: () => tunnel[Symbol.asyncDispose](),
  };
}

/** @param label unique, because names of tunnels and domains are the server's. */
async function createNamed(owner: Person, label: string): Promise<void> {
  const resources: [path: string, body: object][] = [
    ["/tokens", { name: HOSTILE_NAME }],
    ["/projects", { slug: label, name: HOSTILE_NAME }],
    ["/reserved-subdomains", { subdomain: `${label}-reserved` }],
    ["/domains", { domain: `${LONG}.${label}.example.com` }],
    [
      `/orgs/${owner.orgId}/invitations`,
      { email: `${"w".repeat(50)}@${label}.example.com`, role: "member" },
    ],
  ];
  for (const [path, body] of resources) {
    const reply = await owner.post(path, body);
    if (reply.status >= 300) throw new Error(`${path}: ${JSON.stringify(reply.body)}`);
  }
}

/** So that the overview shows a notice. */
async function spendBudget(api: TestApi, owner: Person, tunnelId: string): Promise<void> {
  const { nonce } = await mintToken(owner, { name: "spent" });
  await api.sql(
    `insert into token_usage
     select id, to_char(now() at time zone 'utc', 'YYYY-MM'), $2, 9e9, 1 from tokens where nonce = $1`,
    [nonce, tunnelId],
  );
  await owner.put(`/orgs/${owner.orgId}/budget`, { monthlyBudgetUsdCents: 100 });
}
