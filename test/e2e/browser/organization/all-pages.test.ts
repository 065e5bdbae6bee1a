/** Every page with the navigation, with names that a hostile user has chosen for everything that has one. */
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { DASHBOARD_PATHS } from "../../../../protocol/dashboard-paths.ts";
import type { Tunnel } from "../../../../protocol/schemas/tunnels/tunnels.ts";
import { expose } from "../../../../agent/expose.ts";
import { waitForCaptures } from "../../../harness/tunnel/visited-tunnel.ts";
import { mintToken, startApi, type Person } from "../../../harness/server/api.ts";
import {
  NARROW,
  findAccessibilityProblems,
  findPageProblems,
  findUnnamed,
} from "../../../harness/browser/page-checks.ts";
import { usePages, waitForContent } from "../../../harness/browser/pages.ts";

const pages = usePages(() => startApi());

/** Pages without the navigation, which have tests of their own. */
const STEPS = new Set(["/setup", "/activate", "/invitation", "/reset", "/two-factor"]);
const PATHS = DASHBOARD_PATHS.filter((path) => !STEPS.has(path));

/** HTML, a right-to-left override, and more letters than any column is wide. */
const HOSTILE = `<img src=x onerror=alert(1)> \u202egnp.exe ${"W".repeat(25)}`;
const LONG = "W".repeat(60);

let owner: Person;
/** The path with the id of what was created, by its pattern. */
const found = new Map<string, string>();

async function create(path: string, body: unknown): Promise<string> {
  const reply = await owner.post<{ id: string }>(path, body);
  if (reply.status >= 300) throw new Error(`${path}: ${JSON.stringify(reply.body)}`);
  return reply.body.id;
}

/** A tunnel of an agent, with requests whose paths visitors chose. */
async function createTraffic(): Promise<void> {
  const { wireBytes } = await mintToken(owner, { name: HOSTILE });
  const tunnel = await expose({
    fetch: () => new Response("answer"),
    server: pages.api.server.url,
    token: Buffer.from(wireBytes, "base64"),
  });
  const { host } = new URL(tunnel.url);
  const visitor = request({
    host: "127.0.0.1",
    port: pages.api.server.port,
    path: `/${encodeURIComponent(HOSTILE)}/${"x".repeat(300)}`,
    headers: { host, "user-agent": "<b>bot</b>" },
  });
  const [response] = (await once(visitor.end(), "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  await text(response);
  await tunnel.close();
}

beforeAll(async () => {
  owner = await pages.api.owner();
  await pages.api.colleague(owner, "member");
  await createTraffic();
  const label = `a${crypto.randomUUID().replaceAll("-", "").slice(0, 30)}`;
  await create("/projects", { slug: label, name: HOSTILE });
  await create("/reserved-subdomains", { subdomain: `${label}-reserved` });
  await create("/domains", { domain: `${LONG}.${label}.example.com` });
  const network = await create("/private-networks", { name: HOSTILE, cidr: "10.91.0.0/24" });
  const receiver = await create("/webhook-receivers", {
    name: `${HOSTILE}2`,
    validator: "code_host",
    secret: "a secret of the vendor",
  });
  await create(`/orgs/${owner.orgId}/invitations`, {
    email: `${"w".repeat(50)}@${label}.example.com`,
    role: "member",
  });
  const { body: tunnels } = await owner.get<Tunnel[]>("/tunnels");
  const [captured] = await waitForCaptures(owner, {}, 1);
  found.set("/tunnels/:id", `/tunnels/${tunnels[0]!.id}`);
  found.set("/requests/:id", `/requests/${captured!.id}`);
  found.set("/networks/:id", `/networks/${network}`);
  found.set("/receivers/:id", `/receivers/${receiver}`);
});

/** More of them on a page are alike, such as the events of the audit log. */
const OPENED_DETAILS = 3;

async function goTo(page: Page, path: string): Promise<void> {
  await page.goto(pages.origin + (found.get(path) ?? path));
  await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
  await page.getByRole("status", { name: "Loading" }).first().waitFor({ state: "detached" });
}

/** By path, of all pages that a test has opened so far. */
const titles = new Map<string, string>();
const MIDDLE = PATHS.length / 2;

test.each([
  ["first half", PATHS.slice(0, MIDDLE)],
  ["second half", PATHS.slice(MIDDLE)],
])(
  "axe finds nothing on any page with details open, each fits 360 pixels, has a title, and names everything: %s",
  async (_half, paths) => {
    const page = await pages.openAs(owner.email);
    const problems: unknown[] = [];
    for (const path of paths) {
      await goTo(page, path);
      await waitForContent(page);
      titles.set(path, await page.title());
      await page.evaluate(
        `for (const each of [...document.querySelectorAll("details")].slice(0, ${OPENED_DETAILS}))
         each.open = true`,
      );
      const found = [...(await findPageProblems(page)), ...(await findUnnamed(page))];
      problems.push(...found.map((problem) => [path, problem]));
    }
    expect(problems).toEqual([]);
    const shown = [...titles.values()];
    expect(shown).toEqual([...new Set(shown)]);
    expect(shown.filter((title) => !title.endsWith(" · Underpass"))).toEqual([]);
  },
);

test("axe finds nothing in the list of keys, a menu and the narrow navigation", async () => {
  const page = await pages.openAs(owner.email, "/audit");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Export" }).click();
  await page.getByRole("menuitem").first().waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
  await page.keyboard.press("Escape");
  await page.setViewportSize(NARROW);
  await page.getByRole("button", { name: "Open the navigation" }).click();
  await page.getByRole("dialog", { name: "Navigation" }).waitFor();
  expect(await findAccessibilityProblems(page)).toEqual([]);
});
