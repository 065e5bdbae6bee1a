/** Pages while the server can't be reached, and after it is back, in a real browser. */
import { expect, test } from "vitest";
import { startApi } from "../../harness/server/api.ts";
import { getSection, usePages } from "../../harness/browser/pages.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

const pages = usePages(() => startApi());

/** Longer than the pauses between the attempts of a query. */
const STEP_MS = 10_000;

test("a section that could not be loaded says so until the server is back, and then appears without a click", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email);
  await page.clock.install();
  const isMembers = /\/orgs\/[^/]+\/members/;
  await page.route(isMembers, (route) => route.abort("connectionrefused"));
  await page.getByRole("link", { name: "Members", exact: true }).click();
  const members = getSection(page, "Members");
  const retry = members.getByRole("button", { name: "Try again" });
  const passTime = async () => {
    await page.clock.fastForward(STEP_MS);
    return retry.count();
  };
  await expect.poll(passTime, WAIT_OPTIONS).toBe(1);
  let attempts = 0;
  page.on("requestfailed", (request) => (attempts += isMembers.test(request.url()) ? 1 : 0));
  const counts = new Set<number>();
  const passTimeAndCount = async () => {
    counts.add(await passTime());
    return attempts;
  };
  await expect.poll(passTimeAndCount, WAIT_OPTIONS).toBeGreaterThan(5);
  expect([...counts]).toEqual([1]);

  await page.unroute(isMembers);
  await expect.poll(passTime, WAIT_OPTIONS).toBe(0);
  await members.getByText(owner.email).waitFor();
});

test("a page whose code can't be loaded says so, and appears when the server answers again", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email);
  await page.clock.install();
  await page.route("**/*", (route) => route.abort("connectionrefused"));
  await page.getByRole("link", { name: "Projects", exact: true }).click();
  const notice = page.getByRole("alert").filter({ hasText: "The server can't be reached." });
  await notice.waitFor();
  await notice.getByRole("button", { name: "Try again" }).click();
  await notice.getByRole("button", { name: "Try again", disabled: false }).waitFor();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();

  await page.unroute("**/*");
  await page.clock.fastForward(STEP_MS);
  await page.getByRole("heading", { level: 1, name: "Projects" }).waitFor();
});
