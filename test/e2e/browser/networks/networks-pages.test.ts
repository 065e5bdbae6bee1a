/** The pages of private networks, in a real browser, with the test in the role of the relay. */
import type { Page } from "playwright-core";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Device, PrivateNetwork } from "../../../../protocol/schemas/networks.ts";
import { derivePublicKey } from "../../../../agent/vpn/wireguard/keys.ts";
import { startApi, type Person } from "../../../harness/server/api.ts";
import {
  createNetwork,
  enroll,
  newKey,
  registerServer,
} from "../../../harness/server/private-networks.ts";
import { RelayLink } from "../../../harness/server/relay-link.ts";
import {
  findChangingCommands,
  findPageProblems,
  NARROW,
} from "../../../harness/browser/page-checks.ts";
import {
  answerDialog,
  chooseAction,
  clickButton,
  getDialog,
  getSection,
  usePages,
  waitForContent,
} from "../../../harness/browser/pages.ts";

const pages = usePages(() => startApi());
let relay: RelayLink;
beforeAll(async () => {
  relay = await RelayLink.connect(pages.api.server, { lastPort: 40_400 });
});
afterAll(() => relay?.[Symbol.dispose]());

type Report = Parameters<RelayLink["report"]>[0];
type NetworkReport = NonNullable<Report["networks"]>[number];

/** Reports the network as a relay does that an agent serves over UDP. */
function report(owner: Person, { id }: PrivateNetwork, change: Partial<NetworkReport> = {}): void {
  const network = {
    networkId: id,
    orgId: owner.orgId,
    state: "udp" as const,
    latencyMs: 23,
    loss: 0.001,
    lastSeenAtMs: Date.now(),
    isLocalListening: true,
    wrongKeyHandshakes: 0,
    devices: [],
    ...change,
  };
  relay.report({ networks: [network] });
}

function reportDevice(publicKey: string, lastHandshakeAtMs: number | null) {
  return {
    publicKey,
    lastHandshakeAtMs,
    endpoint: "203.0.113.7:51820",
    rxBytes: 1_234_567,
    txBytes: 7_654_321,
  };
}

async function createServedNetwork(owner: Person, name: string): Promise<PrivateNetwork> {
  const { id } = await createNetwork(owner, { name });
  const network = await registerServer(owner, id);
  report(owner, network);
  return network;
}

const openNetwork = (owner: Person, { id }: PrivateNetwork): Promise<Page> =>
  pages.openAs(owner.email, `/networks/${id}`);

test("an empty list shows the commands, and turns live when an agent creates the network", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/networks");
  await page.getByText(`sudo npx underpass login --server ${pages.origin}`).waitFor();
  await page
    .getByText("sudo npx underpass vpn office --setup --cidr 10.88.0.0/24 --apply")
    .waitFor();
  const network = await createServedNetwork(owner, "warehouse");
  await enroll(owner, network.id);
  const row = page.getByRole("row").filter({ hasText: "warehouse" });
  await row.getByText("online", { exact: true }).waitFor();
  await row.getByText("10.88.0.0/24").waitFor();
  await row.getByRole("cell", { name: "1", exact: true }).waitFor();
});

test("a network is created and a device is added with the keyboard alone", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/networks");
  const press = async (role: "button" | "link", name: string) => {
    await page.getByRole(role, { name, exact: true }).focus();
    await page.keyboard.press("Enter");
  };
  /** A dialog moves the focus just after it has become visible. */
  const waitForFocus = (field: string) => page.locator(`[name="${field}"]:focus`).waitFor();
  await press("button", "New network");
  await waitForFocus("name");
  await page.keyboard.type("plant");
  await page.keyboard.press("Tab");
  await page.keyboard.type("10.0.0.0/8");
  await page.keyboard.press("Enter");
  await page.getByText("must have a prefix from /16 to /30").waitFor();
  await press("button", "172.27.0.0/24");
  await press("button", "Create");
  await page.getByRole("heading", { level: 1, name: "plant" }).waitFor();
  await page.getByText("sudo npx underpass vpn plant --setup --apply").waitFor();

  await press("button", "Register an existing server");
  await waitForFocus("server_public_key");
  await page.keyboard.type(newKey());
  await page.keyboard.press("Enter");
  await getSection(page, "Server").getByText("relay.example.com:").waitFor();
  await page.getByText("No agent serves the network").waitFor();

  await press("button", "Add a device");
  await waitForFocus("name");
  await page.keyboard.type("phone");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Set up phone" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("img", { name: "QR code with the configuration of the device" }).waitFor();
  await press("button", "Done");
  await getSection(page, "Devices").getByText("172.27.0.2").waitFor();
});

test("a new device gets a configuration whose private key the server never sees", async () => {
  const owner = await pages.api.owner();
  const network = await createServedNetwork(owner, "Main Office");
  const page = await openNetwork(owner, network);
  const sent: string[] = [];
  page.on("request", (request) => sent.push(request.postData() ?? ""));
  await clickButton(page, "Add a device");
  await page.getByLabel("Name").fill("laptop");
  await clickButton(page, "Add");
  const dialog = page.getByRole("dialog", { name: "Set up laptop" });
  await dialog.getByRole("tab", { name: "Linux" }).click();
  await dialog.getByText("sudo systemctl enable --now wg-quick@main-office").waitFor();
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    clickButton(page, "Download main-office.conf"),
  ]);
  expect(download.suggestedFilename()).toBe("main-office.conf");
  const config = await readFile(await download.path(), "utf8");
  const privateKey = /PrivateKey = (\S+)/.exec(config)?.[1] ?? "";
  const { body } = await owner.get<Device[]>(`/private-networks/${network.id}/devices`);
  expect(derivePublicKey(privateKey)).toBe(body[0]?.public_key);
  expect(config).toContain(`PublicKey = ${network.server_public_key}`);
  expect(config).toContain(`Endpoint = ${network.public_endpoint}`);
  expect(sent.join("\n")).toContain(body[0]?.public_key);
  expect(sent.join("\n")).not.toContain(privateKey);

  report(owner, network, { devices: [reportDevice(body[0]!.public_key, Date.now())] });
  await dialog.getByText("laptop has reached the server.").waitFor();
  await clickButton(page, "Done");
  const row = getSection(page, "Devices").getByRole("row").filter({ hasText: "laptop" });
  await row.getByText("connected", { exact: true }).waitFor();
  for (const text of ["10.88.0.2", "1.23 MB", "7.65 MB", "203.0.113.7:51820"]) {
    await row.getByText(text).waitFor();
  }
  await chooseAction(page, "laptop", "Show the configuration…");
  await page.getByText("PrivateKey = <PASTE_CLIENT_PRIVATE_KEY>").waitFor();
  await answerDialog(page, "Close");
});

test("the page names what is wrong with a network, and follows its state", async () => {
  const owner = await pages.api.owner();
  const network = await createServedNetwork(owner, "depot");
  const page = await openNetwork(owner, network);
  const state = getSection(page, "State");
  await state.getByText("online", { exact: true }).waitFor();
  await state.getByText("23 ms").waitFor();
  report(owner, network, { state: "websocket", isLocalListening: false, wrongKeyHandshakes: 2 });
  await state.getByText("Nothing is listening on port 51820 of the server").waitFor();
  await state.getByText("UDP between the server and the relay is blocked").waitFor();
  await state.getByText("A device uses an earlier key of the server").waitFor();
  report(owner, network, { state: "offline", latencyMs: null, loss: null });
  await state.getByText("No agent serves the network").waitFor();
});

test("a device that has not connected is explained, and is removed after a confirmation", async () => {
  const owner = await pages.api.owner();
  const network = await createServedNetwork(owner, "lab");
  await enroll(owner, network.id, { name: "<b>tablet</b>" });
  const page = await openNetwork(owner, network);
  const devices = getSection(page, "Devices");
  const badge = devices.getByText("no handshake yet");
  await badge.waitFor();
  const { height } = (await badge.boundingBox())!;
  const size = page.viewportSize()!;
  await page.setViewportSize(NARROW);
  expect((await badge.boundingBox())!.height).toBe(height);
  await page.setViewportSize(size);
  await devices.getByText("What to check when a device has no handshake").click();
  await devices.getByText("allows outgoing UDP").waitFor();
  await chooseAction(page, "<b>tablet</b>", "Remove…");
  await answerDialog(page, "Remove");
  await devices.getByText("There are no devices yet.").waitFor();
});

test("the server is removed and the network deleted only after their name was typed", async () => {
  const owner = await pages.api.owner();
  const network = await createServedNetwork(owner, "cabin");
  const page = await openNetwork(owner, network);
  await getSection(page, "Server").getByRole("button", { name: "Show configuration" }).click();
  await page.getByText("PrivateKey = <PASTE_SERVER_PRIVATE_KEY>").waitFor();
  await answerDialog(page, "Close");
  await clickButton(page, "Remove the server");
  await page.getByLabel("Type cabin to confirm").fill("cabin");
  await getDialog(page).getByRole("button", { name: "Remove the server" }).click();
  await getSection(page, "State").getByText("no server yet").waitFor();
  await clickButton(page, "Delete");
  await page.getByLabel("Type cabin to confirm").fill("cabin");
  await getDialog(page).getByRole("button", { name: "Delete the network" }).click();
  await page.getByText("Connect your first private network").waitFor();
});

test("viewers see the state, and no buttons that the API would refuse", async () => {
  const owner = await pages.api.owner();
  const viewer = await pages.api.colleague(owner, "viewer");
  const network = await createServedNetwork(owner, "archive");
  await enroll(owner, network.id, { name: "kiosk" });
  const page = await openNetwork(viewer, network);
  await getSection(page, "Devices").getByText("kiosk").waitFor();
  const buttons = await page.getByRole("main").getByRole("button").allTextContents();
  expect(buttons.filter((text) => text !== "Copy")).toEqual(["⋯", "Show configuration"]);
  expect(await findChangingCommands(page)).toEqual([]);
  await clickButton(page, "Actions for kiosk");
  await page.getByRole("menuitem", { name: "Show the configuration…" }).waitFor();
  expect(await page.getByRole("menuitem").count()).toBe(1);
});

test("a list of 100 networks asks only for the devices of those on the screen", async () => {
  const owner = await pages.api.owner();
  await pages.api.sql(
    `insert into private_networks (org_id, name, cidr)
     select $1, 'site ' || n, '10.88.0.0/24' from generate_series(1, 100) n`,
    [owner.orgId],
  );
  const page = await pages.openAs(owner.email);
  const asked = new Set<string>();
  page.on("request", (request) => {
    const { pathname } = new URL(request.url());
    if (pathname.endsWith("/devices")) asked.add(pathname);
  });
  await page.getByRole("link", { name: "Networks" }).click();
  const rows = page.getByRole("main").getByRole("row");
  await rows.nth(1).getByRole("cell", { name: "0", exact: true }).waitFor();
  expect(await rows.count()).toBe(101);
  await rows.last().scrollIntoViewIfNeeded();
  await rows.last().getByRole("cell", { name: "0", exact: true }).waitFor();
  expect(asked.size).toBeLessThan(60);
});

test("axe finds nothing on a served network and in the dialogs, which fit a narrow screen", async () => {
  const owner = await pages.api.owner();
  const network = await createServedNetwork(owner, "accessible site");
  const { device } = await enroll(owner, network.id, { name: "phone of the night shift" });
  report(owner, network, {
    state: "websocket",
    devices: [reportDevice(device.public_key, Date.now())],
  });
  const page = await pages.openAs(owner.email, "/networks");
  const check = async () => expect(await findPageProblems(page)).toEqual([]);
  await clickButton(page, "New network");
  await page.getByLabel("Name").waitFor();
  await check();
  await page.goto(`${pages.origin}/networks/${network.id}`);
  await waitForContent(page);
  await getSection(page, "Devices").getByText("connected", { exact: true }).waitFor();
  await check();
  await clickButton(page, "Add a device");
  await page.getByLabel("Name").fill("tablet");
  await clickButton(page, "Add");
  await page.getByRole("tab", { name: "Android" }).waitFor();
  await check();
});

test("devices beyond the first page of the API are listed too, a few at first", async () => {
  const owner = await pages.api.owner();
  const network = await createNetwork(owner, { name: "campus", cidr: "10.88.0.0/16" });
  await pages.api.sql(
    `insert into private_network_devices (network_id, name, public_key, host_number)
     select $1, 'device ' || n, encode(sha256(n::text::bytea), 'base64'), n + 1
     from generate_series(1, 1001) n`,
    [network.id],
  );
  const page = await pages.openAs(owner.email, "/networks");
  await page.getByRole("cell", { name: "1,001" }).waitFor();
  await page.getByRole("link", { name: "campus" }).click();
  await clickButton(page, "Show 50 more");
  await page.getByRole("row").nth(100).waitFor();
});
