/** The first visit to a new server. */
import { expect, test } from "vitest";
import { clickButton, usePages, waitForContent } from "../../harness/browser/pages.ts";
import { PASSWORD, startApi } from "../../harness/server/api.ts";

const pages = usePages(() => startApi({ shared: false }), false);

test("leads to the set-up, which signs the owner in, and is not offered again", async () => {
  const page = await pages.openSignedOut("/");
  await page.getByRole("link", { name: "Create the owner's account" }).click();
  await page.getByLabel("Setup code").fill("WRON-GCOD-EWRO-NGCO");
  await page.getByLabel("Email address").fill("ada@localhost");
  await page.getByLabel("Password").fill(PASSWORD);
  await clickButton(page, "Create the owner's account");
  await page.getByRole("alert").filter({ hasText: "The setup code is wrong" }).waitFor();
  await page.getByLabel("Setup code").fill(pages.api.server.setupCode ?? "");
  await clickButton(page, "Create the owner's account");
  await waitForContent(page);
  expect(new URL(page.url()).pathname).toBe("/");
  await page.getByText(`underpass login --server ${pages.origin}`).waitFor();

  const later = await pages.openSignedOut("/");
  await later.getByRole("button", { name: "Sign in" }).waitFor();
  await later.waitForLoadState("networkidle");
  expect(await later.getByRole("link", { name: "Create the owner's account" }).count()).toBe(0);
});
