/** What closes a dialog, in a real browser. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { startApi } from "../../harness/server/api.ts";
import { clickButton, getDialog, usePages } from "../../harness/browser/pages.ts";

const pages = usePages(() => startApi());

const DISMISSALS: [name: string, dismiss: (page: Page) => Promise<void>][] = [
  ["Escape", (page) => page.keyboard.press("Escape")],
  ["a click beside the dialog", (page) => page.mouse.click(5, 5)],
];

test.each(DISMISSALS)(
  "%s discards what was typed only after a confirmation",
  async (_, dismiss) => {
    const owner = await pages.api.owner();
    const page = await pages.openAs(owner.email, "/projects");
    const dialog = getDialog(page);
    const question = page.getByRole("dialog", { name: "Discard what you typed?" });

    await clickButton(page, "Create a project");
    await dialog.waitFor();
    await dismiss(page);
    await dialog.waitFor({ state: "detached" });

    await clickButton(page, "Create a project");
    const name = dialog.getByRole("textbox").first();
    await name.fill("shop");
    await dismiss(page);
    await question.waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    expect(await name.inputValue()).toBe("shop");

    await dismiss(page);
    await question.waitFor();
    await clickButton(page, "Discard");
    await dialog.first().waitFor({ state: "detached" });
    await clickButton(page, "Create a project");
    await dialog.waitFor();
    expect(await name.inputValue()).toBe("");
  },
);

test("a name that was typed to confirm an action is not worth a question", async () => {
  const owner = await pages.api.owner();
  await owner.post("/projects", { slug: "shop", name: "Shop" });
  const page = await pages.openAs(owner.email, "/projects");
  await clickButton(page, "Actions for Shop");
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await getDialog(page).getByRole("textbox").fill("Sho");
  await page.keyboard.press("Escape");
  await getDialog(page).waitFor({ state: "detached" });
});

test("an error that arrives after the user has closed the dialog is a notification", async () => {
  const owner = await pages.api.owner();
  await owner.post("/projects", { slug: "shop", name: "Shop" });
  const page = await pages.openAs(owner.email, "/projects");
  const deletion = Promise.withResolvers<void>();
  await page.route("**/projects/shop", async (route) => {
    await deletion.promise;
    await route.fulfill({
      status: 403,
      json: { error: "forbidden", message: "Your role does not allow this." },
    });
  });
  await clickButton(page, "Actions for Shop");
  await page.getByRole("menuitem", { name: "Delete" }).click();
  await getDialog(page).getByRole("textbox").fill("shop");
  await page.keyboard.press("Enter");
  await getDialog(page).locator("[aria-busy=true]").waitFor();
  await page.keyboard.press("Escape");
  await getDialog(page).waitFor({ state: "detached" });
  deletion.resolve();
  await page.getByText("Your role does not allow this.").first().waitFor();
});
