/** Projects in the dashboard, and the accessibility of their page and that of tokens, in a real browser. */
import { expect, test } from "vitest";
import type { Token } from "../../../protocol/schemas/tokens.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { findPageProblems } from "../../harness/browser/page-checks.ts";
import {
  answerDialog,
  chooseAction,
  clickButton,
  getDialog,
  getRow,
  getSection,
  saveNewToken,
  usePages,
  waitForContent,
} from "../../harness/browser/pages.ts";
import { mintToken, startApi } from "../../harness/server/api.ts";

const pages = usePages(() => startApi());

test("a project is created, gets a token, leads to its tunnels, is renamed and deleted", async () => {
  const owner = await pages.api.owner();
  const page = await pages.openAs(owner.email, "/projects");
  await clickButton(page, "Create a project");
  const dialog = getDialog(page);
  await dialog.getByLabel("Name", { exact: true }).fill("Staging");
  await dialog.getByLabel("Slug").fill("default");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByRole("alert").filter({ hasText: "The slug default is taken." }).waitFor();
  await dialog.getByLabel("Slug").fill("staging");
  await answerDialog(page, "Create");
  await owner.post<Tunnel>("/tunnels", { localPort: 1, projectSlug: "staging" });
  await getRow(page, "Staging").getByRole("link", { name: "1 tunnel" }).waitFor();

  await chooseAction(page, "Staging", "Mint a token…");
  await dialog.getByLabel("Name", { exact: true }).fill("ci");
  await dialog.getByRole("button", { name: "Mint" }).click();
  await saveNewToken(page);
  await getRow(page, "Staging").getByRole("link", { name: "1 token" }).click();
  await getRow(page, "ci").getByText("project staging").waitFor();
  await page.goBack();
  await waitForContent(page);

  await chooseAction(page, "Staging", "Rename…");
  await page.getByLabel("New name").fill("Test <b>");
  await answerDialog(page, "Rename");
  await chooseAction(page, "Test <b>", "Delete…");
  await page.getByText("This ends 1 tunnel").waitFor();
  await page.getByLabel("Type staging to confirm").fill("staging");
  await answerDialog(page, "Delete");
  await getRow(page, "Test <b>").waitFor({ state: "detached" });
  const { body } = await owner.get<Token[]>("/tokens");
  expect(body).toMatchObject([{ name: "ci", revoked: true }]);
  await getSection(page, "1 project").waitFor();
});

test("axe finds nothing on tokens and in the dialogs that mint one, which fit a narrow screen", async () => {
  const owner = await pages.api.owner();
  await mintToken(owner, { name: `laptop ${"x".repeat(80)}`, allowedSubdomains: ["pr-*"] });
  const { nonce } = await mintToken(owner, { name: "blocked" });
  await owner.put(`/tokens/${nonce}/budget`, { monthlyBudgetUsdCents: 0 });
  const page = await pages.openAs(owner.email, "/tokens");
  await getRow(page, "blocked").waitFor();
  expect(await findPageProblems(page)).toEqual([]);
  await clickButton(page, "Mint a token");
  await getDialog(page).getByLabel("Name", { exact: true }).fill("machine");
  expect(await findPageProblems(page)).toEqual([]);
  await getDialog(page).getByRole("button", { name: "Mint" }).click();
  await page.getByLabel("I have saved it").waitFor();
  expect(await findPageProblems(page)).toEqual([]);
});
